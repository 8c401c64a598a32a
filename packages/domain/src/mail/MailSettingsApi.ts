/** Operations of mail settings: Allowed Recipients, the AI disclosure, and stopping outgoing mail. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { always, onIdentity, onIdentityExcept, callers, callersWithin } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, wholePaging } from "../Paging.ts"
import { conditional, located } from "../Precondition.ts"
import {
  AdminRequired,
  Conflict,
  IdentityNotReady,
  InvalidCursor,
  InvalidRequest,
  NotFound,
  PreconditionFailed,
  Unavailable,
} from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { AllowedAddress } from "./AllowedAddress.ts"
import {
  AiDisclosure,
  AllowedRecipient,
  DisclosureText,
  MailPatch,
  MailStatus,
  OrgMailPatch,
  OrgMailStatus,
  StoppedMail,
} from "./MailSettings.ts"
import { About } from "../account/EndpointScope.ts"

const params = { handle: HandleParam }
const tag = { etag: Schema.String }
const writeErrors = [NotFound, IdentityNotReady, Unavailable] as const

export class MailSettingsApi extends HttpApiGroup.make("mail_settings")
  .add(
    HttpApiEndpoint.get("recipients", "/api/identities/:handle/allowed-recipients", {
      params,
      query: {
        ...wholePaging,
        address: Schema.optionalKey(
          Text.check(Schema.isMaxLength(320)).annotate({
            description:
              "Only addresses with this prefix. Case is ignored; a whole address shows whether it is allowed.",
          }),
        ),
      },
      success: pageOf("allowed_recipients", AllowedRecipient),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List Allowed Recipients")
      .annotate(Tool, {
        name: "svc_allowed_recipient_list",
        effect: "read",
        advice: "Mail goes only to these addresses; the account holder adds more.",
        columns: ["address", "reason", "expired", "expires_at", "suppressed.reason"],
      }),
    HttpApiEndpoint.post("allow", "/api/identities/:handle/allowed-recipients", {
      params,
      payload: Schema.Struct({
        address: AllowedAddress.annotate({
          description: "The email address. Its domain may contain Unicode letters and is stored in A-labels.",
        }),
      }),
      success: HttpApiSchema.WithHeaders(AllowedRecipient.pipe(HttpApiSchema.status(201)), located),
      error: writeErrors,
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Add an Allowed Recipient"),
    HttpApiEndpoint.delete("disallow", "/api/identities/:handle/allowed-recipients/:address", {
      params: { ...params, address: AllowedAddress.annotate({ description: "The email address." }) },
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [...writeErrors, Conflict, PreconditionFailed],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Remove an Allowed Recipient"),
    HttpApiEndpoint.delete("lift", "/api/identities/:handle/allowed-recipients/:address/suppression", {
      params: { ...params, address: AllowedAddress.annotate({ description: "The email address." }) },
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [...writeErrors, PreconditionFailed],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Lift the suppression of an address whose mail bounced"),
    HttpApiEndpoint.get("disclosure", "/api/identities/:handle/ai-disclosure", {
      params,
      success: HttpApiSchema.WithHeaders(AiDisclosure, tag),
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the AI disclosure")
      .annotate(Tool, {
        name: "svc_ai_disclosure_get",
        effect: "read",
        advice: "All outgoing mail carries it.",
      }),
    HttpApiEndpoint.put("setDisclosure", "/api/identities/:handle/ai-disclosure", {
      params,
      headers: conditional,
      payload: Schema.Struct({ text: DisclosureText }),
      success: HttpApiSchema.WithHeaders(AiDisclosure, tag),
      error: [...writeErrors, PreconditionFailed],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Replace the AI disclosure"),
    HttpApiEndpoint.delete("resetDisclosure", "/api/identities/:handle/ai-disclosure", {
      params,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [...writeErrors, PreconditionFailed],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Restore the default AI disclosure"),
    HttpApiEndpoint.get("status", "/api/identities/:handle/mail", {
      params,
      success: HttpApiSchema.WithHeaders(MailStatus, tag),
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read whether outgoing mail is stopped")
      .annotate(Tool, { name: "svc_mail_status", effect: "read" }),
    HttpApiEndpoint.patch("switch", "/api/identities/:handle/mail", {
      params,
      headers: conditional,
      payload: [MailPatch, MailPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: HttpApiSchema.WithHeaders(MailStatus, tag),
      error: [...writeErrors, InvalidRequest, AdminRequired, PreconditionFailed],
    })
      .pipe(
        onIdentityExcept<MailPatch>(
          "An Identity Key can stop outgoing mail, but cannot resume it or change whether approval is required.",
          { outgoing: (to) => to === "active", approval: always },
        ),
      )
      .annotate(OpenApi.Summary, "Stop or resume outgoing mail, require approval, or show tags as folders"),
  )
  .annotateEndpoints(About, "mail")
  .annotate(OpenApi.Description, "Allowed Recipients, the AI disclosure, and stopping outgoing mail.") {}

export class OrgMailApi extends HttpApiGroup.make("org_mail")
  .add(
    HttpApiEndpoint.get("stopped", "/api/account/mail", { success: StoppedMail, error: [Unavailable] })
      .pipe(callersWithin("org"))
      .annotate(OpenApi.Summary, "List the Identities whose outgoing mail is stopped"),
  )
  .add(
    HttpApiEndpoint.patch("switch", "/api/account/mail", {
      payload: [OrgMailPatch, OrgMailPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      headers: conditional,
      success: OrgMailStatus,
      error: [PreconditionFailed, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Stop or resume the outgoing mail of all Identities"),
  )
  .annotateEndpoints(About, "mail")
  .annotate(OpenApi.Description, "Stops or resumes outgoing mail for all Identities of the Org.") {}

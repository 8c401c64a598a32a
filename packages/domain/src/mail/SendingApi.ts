/** Operations of sending mail, drafts and approvals. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Confidential, onIdentity, Tagged } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { MessageId } from "../IdSchemas.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, paging } from "../Paging.ts"
import { conditional, located } from "../Precondition.ts"
import {
  Conflict,
  ContentChanged,
  IdentityNotReady,
  InvalidCursor,
  MailPaused,
  MessageInvalid,
  MessageTooLarge,
  NotFound,
  PreconditionFailed,
  RateLimited,
  RecipientNotAllowed,
  Unavailable,
} from "../problems/Problem.ts"
import { Outbound } from "./Delivery.ts"
import { Approving, Draft, DraftSummary, NewMail, PendingApproval, Refusal, Sent, WholeApproval } from "./Sending.ts"
import { About } from "../account/EndpointScope.ts"

const params = { handle: HandleParam }
const one = { handle: HandleParam, id: MessageId.annotate({ description: "The id of the resource." }) }
const tag = { etag: Schema.String }

/** Problems that sending a message can have. */
const refusals = [
  NotFound,
  IdentityNotReady,
  MailPaused,
  RecipientNotAllowed,
  MessageInvalid,
  MessageTooLarge,
  RateLimited,
  Conflict,
  Unavailable,
] as const

const accepted = HttpApiSchema.WithHeaders(Sent.pipe(HttpApiSchema.status(202)), located)

/** The body is optional. */
const NoBody = Schema.Undefined

export class SendingApi extends HttpApiGroup.make("sending")
  .add(
    HttpApiEndpoint.post("send", "/api/identities/:handle/messages/send", {
      params,
      payload: NewMail,
      success: accepted,
      error: refusals,
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Send a message from the Identity's own address")
      .annotate(Tool, {
        name: "svc_email_send",
        effect: "write",
        external: true,
        requires: ["to"],
        advice:
          "Recipients must be Allowed Recipients (`svc_allowed_recipient_list`), as plain addresses. To reply, pass `reply_to_message` and leave `to` empty. `queued`: read the message for its `delivery`; `awaiting_approval`: a person decides first.",
      }),
    HttpApiEndpoint.get("drafts", "/api/identities/:handle/drafts", {
      params,
      query: paging,
      success: pageOf("drafts", DraftSummary),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List drafts, oldest first")
      .annotate(Tool, {
        name: "svc_draft_list",
        effect: "read",
        columns: ["id", "updated_at", "to", "subject", "attachments"],
      }),
    HttpApiEndpoint.post("draft", "/api/identities/:handle/drafts", {
      params,
      payload: NewMail,
      success: HttpApiSchema.WithHeaders(Draft.pipe(HttpApiSchema.status(201)), { ...located, ...tag }),
      error: [NotFound, IdentityNotReady, Conflict, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Save a message as a draft")
      .annotate(Tool, {
        name: "svc_email_draft",
        effect: "write",
        advice: "Only `svc_draft_send` sends the draft.",
      }),
    HttpApiEndpoint.get("readDraft", "/api/identities/:handle/drafts/:id", {
      params: one,
      success: HttpApiSchema.WithHeaders(Draft, tag),
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read one draft")
      .annotate(Tool, {
        name: "svc_draft_get",
        advice: "Send it with `svc_draft_send`.",
        effect: "read",
      }),
    HttpApiEndpoint.put("replaceDraft", "/api/identities/:handle/drafts/:id", {
      params: one,
      headers: conditional,
      payload: NewMail,
      success: HttpApiSchema.WithHeaders(Draft, tag),
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Replace a draft")
      .annotate(Tool, {
        name: "svc_draft_update",
        effect: "idempotent_write",
        advice: "Include what should stay.",
      }),
    HttpApiEndpoint.delete("removeDraft", "/api/identities/:handle/drafts/:id", {
      params: one,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Remove a draft")
      .annotate(Tool, {
        name: "svc_draft_delete",
        advice: "It cannot be restored.",
        effect: "destructive",
      }),
    HttpApiEndpoint.post("sendDraft", "/api/identities/:handle/drafts/:id/send", {
      params: one,
      headers: conditional,
      success: accepted,
      error: [...refusals, PreconditionFailed],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Send a draft")
      .annotate(Tool, {
        name: "svc_draft_send",
        effect: "write",
        external: true,
        advice: "The rules of `svc_email_send` apply.",
      }),
    HttpApiEndpoint.get("approvals", "/api/identities/:handle/approvals", {
      params,
      query: paging,
      success: pageOf("approvals", PendingApproval),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List messages that await approval, oldest first")
      .annotate(Tool, {
        name: "svc_approval_list",
        effect: "read",
        columns: ["id", "requested_at", "to", "subject", "attachments", "expires_at"],
        advice: "Read the whole message with `svc_approval_get`.",
      }),
    HttpApiEndpoint.get("approval", "/api/identities/:handle/approvals/:id", {
      params: one,
      success: WholeApproval,
      error: [NotFound, Conflict, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read a message that awaits approval")
      .annotate(Tagged, true)
      .annotate(Tool, {
        name: "svc_approval_get",
        effect: "read",
        advice: "Pass its `content_sha256` with the decision.",
      }),
    HttpApiEndpoint.post("approve", "/api/identities/:handle/approvals/:id/approve", {
      params: one,
      payload: Approving,
      success: Outbound,
      error: [NotFound, IdentityNotReady, MailPaused, RecipientNotAllowed, Conflict, ContentChanged, Unavailable],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Approve and send a message")
      .annotate(Tool, {
        name: "svc_approval_decide",
        choice: { argument: "decision", value: "approve" },
        effect: "write",
        external: true,
        advice: "Only for the account holder or a representative, after `svc_approval_get`.",
      }),
    HttpApiEndpoint.post("refuse", "/api/identities/:handle/approvals/:id/refuse", {
      params: one,
      payload: [NoBody, Refusal],
      success: Outbound,
      error: [NotFound, IdentityNotReady, Conflict, ContentChanged, Unavailable],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Reject a message, which is then not sent")
      .annotate(Tool, {
        name: "svc_approval_decide",
        choice: { argument: "decision", value: "refuse" },
        effect: "write",
      }),
  )
  .annotateEndpoints(About, "mail")
  .annotateEndpoints(Confidential, true)
  .annotate(OpenApi.Description, "Sending mail, drafts, and approvals.") {}

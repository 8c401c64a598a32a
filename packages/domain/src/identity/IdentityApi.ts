/** Operations of interface.md "Identities", and the Handle check of its operational table. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { callers, callersWithin, CallPolicy, Confidential, onIdentity, Tagged } from "../account/Policy.ts"
import { HandleParam, WantedHandle } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, wholePaging } from "../Paging.ts"
import {
  HandleInvalid,
  HandleReserved,
  HandleTaken,
  IdentityBusy,
  IdentityNotReady,
  IdentityQuotaExhausted,
  InvalidCursor,
  NotFound,
  PreconditionFailed,
  RateLimited,
  ScopeExceeds,
  Unavailable,
} from "../problems/Problem.ts"
import { conditional, located } from "../Precondition.ts"
import { Identity, ShowOnceSecrets } from "./Identity.ts"
import { About, Reveals } from "../account/EndpointScope.ts"

const accepted = HttpApiSchema.WithHeaders(Identity.pipe(HttpApiSchema.status(202)), located)

export class IdentityApi extends HttpApiGroup.make("identities")
  .add(
    HttpApiEndpoint.get("list", "/api/identities", {
      query: wholePaging,
      success: pageOf("identities", Identity),
      error: [InvalidCursor, Unavailable],
    })
      .pipe(callersWithin("org"))
      .annotate(OpenApi.Summary, "List Identities, oldest first")
      .annotate(Tool, {
        name: "svc_identity_list",
        effect: "read",
        columns: ["handle", "status", "email", "tunnel.connected", "created_at"],
      }),
    HttpApiEndpoint.post("create", "/api/identities", {
      payload: Schema.Struct({ handle: WantedHandle }),
      success: accepted,
      error: [HandleInvalid, HandleTaken, HandleReserved, IdentityQuotaExhausted, RateLimited, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Create an Identity")
      .annotate(CallPolicy, "identity_create")
      .annotate(Tool, {
        name: "svc_identity_create",
        effect: "write",
        advice:
          "Check the name with `svc_handle_check` first: it is never issued twice. Then poll `svc_identity_get` until `status` is `ready`; on `failed`, call `svc_identity_retry`. The account holder receives the key, not you.",
      }),
    HttpApiEndpoint.get("read", "/api/identities/:handle", {
      params: { handle: HandleParam },
      success: Identity,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read an Identity with its latest saga")
      .annotate(Tagged, true)
      .annotate(Tool, {
        name: "svc_identity_get",
        effect: "read",
      }),
    HttpApiEndpoint.delete("remove", "/api/identities/:handle", {
      params: { handle: HandleParam },
      headers: conditional,
      success: accepted,
      error: [NotFound, IdentityBusy, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("org"))
      .annotate(OpenApi.Summary, "Delete an Identity and everything it owns")
      .annotate(Tool, {
        name: "svc_identity_delete",
        effect: "destructive",
        external: true,
        advice: "Permanent. Do this only if the account holder asked for it.",
      }),
    HttpApiEndpoint.post("retry", "/api/identities/:handle/retry", {
      params: { handle: HandleParam },
      success: accepted,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("org"))
      .annotate(OpenApi.Summary, "Retry a failed saga from its failed step")
      .annotate(Tool, {
        name: "svc_identity_retry",
        effect: "idempotent_write",
        advice: "Then poll `svc_identity_get`.",
      }),
    HttpApiEndpoint.get("secrets", "/api/identities/:handle/identity-key", {
      params: { handle: HandleParam },
      success: ShowOnceSecrets,
      error: [NotFound, ScopeExceeds, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the show-once secrets")
      .annotate(Reveals, true)
      .annotate(Confidential, true),
    HttpApiEndpoint.post("acknowledge", "/api/identities/:handle/identity-key/ack", {
      params: { handle: HandleParam },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Confirm that the show-once secrets were received"),
    HttpApiEndpoint.post("rotate", "/api/identities/:handle/identity-key/rotate", {
      params: { handle: HandleParam },
      success: HttpApiSchema.NoContent,
      error: [NotFound, IdentityNotReady, ScopeExceeds, Unavailable],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Replace the Identity Key and the IMAP password"),
  )
  .annotateEndpoints(About, "identity")
  .annotate(OpenApi.Description, "An agent's public presence: Handle, Mailbox, A2A Card and Tunnel.") {}

const HandleAvailability = Schema.Struct({
  handle: Schema.String,
  available: Schema.Boolean,
  code: Schema.optionalKey(Schema.Literals(["handle_invalid", "handle_reserved", "handle_taken"])),
  detail: Schema.optionalKey(Schema.String),
}).annotate({ identifier: "HandleAvailability" })

export class HandleApi extends HttpApiGroup.make("handles")
  .add(
    HttpApiEndpoint.get("check", "/api/handles/:handle", {
      params: { handle: WantedHandle.annotate({ description: "The name to check, without a leading @." }) },
      success: HandleAvailability,
      error: [RateLimited, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Check whether a Handle can be claimed")
      .annotate(CallPolicy, "handle_check")
      .annotate(Tool, { name: "svc_handle_check", effect: "read" }),
  )
  .annotateEndpoints(About, "identity")
  .annotate(OpenApi.Description, "Availability of Handles.") {}

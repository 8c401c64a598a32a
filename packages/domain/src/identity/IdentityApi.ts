/** "Identities" of interface.md, and the handle check of its operational table. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization, CallPolicy, Tagged } from "../account/Authorization.ts"
import { Tool } from "../mcp/Tool.ts"
import {
  HandleInvalid,
  HandleReserved,
  HandleTaken,
  IdentityBusy,
  IdentityNotReady,
  IdentityQuotaExhausted,
  NotFound,
  RateLimited,
  Unavailable,
} from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { Identity, ShowOnceSecrets } from "./Identity.ts"

/** Any spelling of a Handle names its Identity. */
export const HandleParam = Text.check(Schema.isMaxLength(200))

const accepted = Identity.pipe(HttpApiSchema.status(202))

export class IdentityApi extends HttpApiGroup.make("identities")
  .add(
    HttpApiEndpoint.get("list", "/api/identities", {
      success: Schema.Struct({ identities: Schema.Array(Identity) }),
      error: Unavailable,
    })
      .annotate(Access, "org")
      .annotate(Tool, { name: "svc_identity_list", effect: "read" }),
    HttpApiEndpoint.post("create", "/api/identities", {
      payload: Schema.Struct({ handle: HandleParam }),
      success: accepted,
      error: [HandleInvalid, HandleTaken, HandleReserved, IdentityQuotaExhausted, RateLimited, Unavailable],
    })
      .annotate(CallPolicy, "identity_create")
      .annotate(Access, "org")
      .annotate(Tool, { name: "svc_identity_create", effect: "write" }),
    HttpApiEndpoint.get("read", "/api/identities/:handle", {
      params: { handle: HandleParam },
      success: Identity,
      error: [NotFound, Unavailable],
    })
      .annotate(Tagged, true)
      .annotate(Access, "any")
      .annotate(Tool, { name: "svc_identity_get", effect: "read" }),
    HttpApiEndpoint.delete("remove", "/api/identities/:handle", {
      params: { handle: HandleParam },
      success: accepted,
      error: [NotFound, IdentityBusy, Unavailable],
    })
      .annotate(Access, "org")
      .annotate(Tool, { name: "svc_identity_delete", effect: "destructive", external: true }),
    HttpApiEndpoint.post("retry", "/api/identities/:handle/retry", {
      params: { handle: HandleParam },
      success: accepted,
      error: [NotFound, Unavailable],
    })
      .annotate(Access, "org")
      .annotate(Tool, { name: "svc_identity_retry", effect: "idempotent_write" }),
    HttpApiEndpoint.get("secrets", "/api/identities/:handle/identity-key", {
      params: { handle: HandleParam },
      success: ShowOnceSecrets,
      error: [NotFound, Unavailable],
    }).annotate(Access, "any"),
    HttpApiEndpoint.post("acknowledge", "/api/identities/:handle/identity-key/ack", {
      params: { handle: HandleParam },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Unavailable],
    }).annotate(Access, "any"),
    HttpApiEndpoint.post("rotate", "/api/identities/:handle/identity-key/rotate", {
      params: { handle: HandleParam },
      success: HttpApiSchema.NoContent,
      error: [NotFound, IdentityNotReady, Unavailable],
    }).annotate(Access, "admin"),
  )
  .middleware(Authorization) {}

export const HandleAvailability = Schema.Struct({
  handle: Schema.String,
  available: Schema.Boolean,
  code: Schema.optionalKey(Schema.Literals(["handle_invalid", "handle_reserved", "handle_taken"])),
  detail: Schema.optionalKey(Schema.String),
}).annotate({ identifier: "HandleAvailability" })

export class HandleApi extends HttpApiGroup.make("handles")
  .add(
    HttpApiEndpoint.get("check", "/api/handles/:handle", {
      params: { handle: HandleParam },
      success: HandleAvailability,
      error: [RateLimited, Unavailable],
    })
      .annotate(CallPolicy, "handle_check")
      .annotate(Tool, { name: "svc_handle_check", effect: "read" }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "org") {}

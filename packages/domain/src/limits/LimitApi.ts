/** The limits of an Org and their current use (interface.md "Limits"). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { byQuery, inRealm } from "../account/Policy.ts"
import { About } from "../account/EndpointScope.ts"
import { HandleText } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { NotFound, Unavailable } from "../problems/Problem.ts"
import { TimestampOrNull } from "../Timestamp.ts"

/** Names of the limits in `limit.near` and in the `RateLimit` header fields. */
const limitNames = [
  "calls",
  "identity_create",
  "handle_check",
  "streams_org",
  "identity_quota",
  "tunnel_transfer",
  "mail_hourly",
  "mailbox_bytes",
] as const

/** Returns the use at which `limit.near` is raised: four fifths of the limit. */
export const nearAt = (limit: number): number => Math.ceil(limit * 0.8)

export const LimitUse = Schema.Struct({
  name: Schema.Literals(limitNames).annotate({
    description:
      "Name of the limit. `calls`, `identity_create` and `handle_check`: calls with a credential. `streams_org`: open Event streams on the responding process. `identity_quota`: Identities ever created, including deleted ones. `tunnel_transfer`: bytes through all Tunnels. `mail_hourly`, `mailbox_bytes`: per Identity.",
  }),
  identity: Schema.NullOr(Schema.String).annotate({
    description: "The Handle of the Identity that the limit applies to; null if it applies to the whole Org.",
  }),
  unit: Schema.Literals(["calls", "streams", "identities", "messages", "bytes"]).annotate({
    description: "The unit of the limit.",
  }),
  used: Schema.Int.annotate({
    description: "Current use. For calls it includes budget that processes have reserved, so it can be slightly ahead.",
  }),
  limit: Schema.Int.annotate({ description: "The maximum." }),
  window: Schema.NullOr(Schema.Literals(["minute", "hour", "day"])).annotate({
    description: "The period over which use is counted; null for limits that do not reset.",
  }),
  resets_at: TimestampOrNull.annotate({
    description:
      "When the limit resets. `mail_hourly` counts the last 60 minutes: when the oldest message no longer counts. Null for limits that do not reset.",
  }),
}).annotate({ identifier: "LimitUse" })
export type LimitUse = typeof LimitUse.Type

const LimitList = Schema.Struct({
  limits: Schema.Array(LimitUse).annotate({
    description:
      "The limits of the Org first. Without `identity`, the limits of Identities with any use follow, highest use first, at most 100.",
  }),
}).annotate({ identifier: "LimitList" })

export class LimitApi extends HttpApiGroup.make("limits")
  .add(
    HttpApiEndpoint.get("list", "/api/limits", {
      query: {
        identity: Schema.optionalKey(
          HandleText.annotate({
            description: "The Handle of an Identity: only the limits that apply to it.",
          }),
        ),
      },
      success: LimitList,
      error: [NotFound, Unavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "Read all limits and their current use")
      .annotate(Tool, {
        name: "svc_limit_list",
        effect: "read",
        columns: ["name", "identity", "used", "limit", "unit", "window", "resets_at"],
        advice: "After `rate_limited`, `resets_at` says when to continue.",
      }),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Limits and their current use.") {}

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
export const limitNames = [
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
      "Which it is. `calls`, `identity_create` and `handle_check`: credentialed calls. `streams_org`: streams of Events open at once, at the process that answers. `identity_quota`: Identities ever created, deleted ones included. `tunnel_transfer`: bytes through all Tunnels. `mail_hourly`, `mailbox_bytes`: of one Identity.",
  }),
  identity: Schema.NullOr(Schema.String).annotate({
    description: "The Handle of the Identity that it holds for; null where it holds for the whole Org.",
  }),
  unit: Schema.Literals(["calls", "streams", "identities", "messages", "bytes"]).annotate({
    description: "What the limit counts.",
  }),
  used: Schema.Int.annotate({
    description: "How much is used. Of calls it is what processes have taken to spend, so it may be a little ahead.",
  }),
  limit: Schema.Int.annotate({ description: "How much there is." }),
  window: Schema.NullOr(Schema.Literals(["minute", "hour", "day"])).annotate({
    description: "The time it is counted over; null for what time does not give back.",
  }),
  resets_at: TimestampOrNull.annotate({
    description:
      "When its window ends. `mail_hourly` counts the last 60 minutes: when the oldest message no longer counts. Null where time gives nothing back.",
  }),
}).annotate({ identifier: "LimitUse" })
export type LimitUse = typeof LimitUse.Type

export const LimitList = Schema.Struct({
  limits: Schema.Array(LimitUse).annotate({
    description:
      "Those of the Org first. Without `identity` those of the Identities follow that have used anything, the fullest first, at most 100.",
  }),
}).annotate({ identifier: "LimitList" })

export class LimitApi extends HttpApiGroup.make("limits")
  .add(
    HttpApiEndpoint.get("list", "/api/limits", {
      query: {
        identity: Schema.optionalKey(
          HandleText.annotate({
            description: "The Handle of an Identity: the limits that hold for it, alone or with the others.",
          }),
        ),
      },
      success: LimitList,
      error: [NotFound, Unavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "Read every limit and how much of it is used")
      .annotate(Tool, {
        name: "svc_limit_list",
        effect: "read",
        columns: ["name", "identity", "used", "limit", "unit", "window", "resets_at"],
        advice: "Look here when a call was refused as `rate_limited`: `resets_at` says when to go on.",
      }),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Limits, and how much of each is used.") {}

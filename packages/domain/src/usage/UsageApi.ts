/** Sums of activity per hour or day: mail, deliveries, requests through the Tunnel, and API calls. */
import { Effect, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { About } from "../account/EndpointScope.ts"
import { byQuery, inRealm } from "../account/Policy.ts"
import { HandleText } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { InvalidRequest, NotFound, Unavailable } from "../problems/Problem.ts"
import { FilterTime, Timestamp } from "../Timestamp.ts"

export const stepMillis = { hour: 3_600_000, day: 86_400_000 } as const
export type Step = keyof typeof stepMillis

/** The maximum number of steps between `from` and `to`. */
export const stepsAtMost = 750
/** Maximum number of Identities whose activity a response lists. */
export const identitiesAtMost = 200

/** The span of a request without `from`, in steps. */
export const defaultSteps: { readonly [S in Step]: number } = { hour: 24, day: 30 }

/** The metrics, each with its description. */
export const metrics = {
  mail_received: "messages stored in the Mailbox",
  mail_sent: "messages accepted for sending; a message that needs approval counts when it is approved",
  mail_refused: "incoming messages that were rejected because of their size or a full Mailbox",
  deliveries_succeeded: "delivery attempts to Webhooks that got a 2xx response",
  deliveries_failed: "delivery attempts to Webhooks that failed",
  delivery_ms_p50:
    "half of the delivery attempts took at most this many milliseconds (to within 9%, like the other durations)",
  delivery_ms_p95: "95% of the delivery attempts took at most this many milliseconds",
  tunnel_requests: "HTTP requests and TCP connections through the Tunnel",
  tunnel_errors: "HTTP requests that got a 5xx response, or none because no agent was connected",
  tunnel_ms_p50: "half of the successful responses of the agent began within this many milliseconds",
  tunnel_ms_p95: "95% of the successful responses of the agent began within this many milliseconds",
  tunnel_bytes: "bytes through the Tunnel in both directions",
  tunnel_bytes_in: "bytes to the agent",
  tunnel_bytes_out: "bytes from the agent",
  api_calls: "calls of the API and of tools with a valid credential",
  mailbox_bytes: "largest size of the Mailbox when a message arrived; of one Identity only",
  activity: "messages, delivery attempts, requests through the Tunnel and API calls together; only with `by=identity`",
} as const
export type UsageMetric = keyof typeof metrics

export const UsageSeries = Schema.Struct({
  metric: Schema.Literals(Object.keys(metrics) as ReadonlyArray<UsageMetric>).annotate({
    description: Object.entries(metrics)
      .map(([name, meaning]) => `\`${name}\`: ${meaning}`)
      .join(". "),
  }),
  identity: Schema.optionalKey(
    Schema.String.annotate({ description: "The Handle of the Identity. Absent in the series of the whole account." }),
  ),
  webhook_id: Schema.optionalKey(
    Schema.String.annotate({ description: "The id of the Webhook. Absent unless the series is one of a Webhook." }),
  ),
  points: Schema.Array(
    Schema.Struct({
      at: Timestamp.annotate({ description: "The start of the hour or day (UTC)." }),
      value: Schema.Int.annotate({ description: "The value in this hour or day." }),
    }).annotate({ identifier: "UsagePoint" }),
  ).annotate({ description: "Oldest first. An hour or day in which nothing was counted has no point." }),
}).annotate({ identifier: "UsageSeries" })
export type UsageSeries = typeof UsageSeries.Type

export const Usage = Schema.Struct({
  starts_at: Timestamp.annotate({ description: "The start of the first hour or day." }),
  ends_at: Timestamp.annotate({ description: "The end of the last hour or day." }),
  step: Schema.Literals(["hour", "day"]).annotate({ description: "The length of a point." }),
  series: Schema.Array(UsageSeries).annotate({
    description: `A series of each metric, of the account or of the Identity. With \`identity\`, also those of the deliveries of each Webhook. With \`by=identity\`, also the activity of each of the ${identitiesAtMost} most active Identities.`,
  }),
}).annotate({ identifier: "Usage" })
export type Usage = typeof Usage.Type

export class UsageApi extends HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("read", "/api/usage", {
      query: {
        from: Schema.optionalKey(FilterTime.annotate({ description: "First day or time (UTC)." })),
        to: Schema.optionalKey(FilterTime.annotate({ description: "Before this day or time (UTC)." })),
        step: Schema.Literals(["hour", "day"])
          .annotate({
            description: "Length of a point.",
            default: "day",
          })
          .pipe(Schema.withDecodingDefaultKey(Effect.succeed("day" as const))),
        identity: Schema.optionalKey(
          HandleText.annotate({ description: "The Handle of an Identity. Without it, the sums of the whole account." }),
        ),
        by: Schema.optionalKey(
          Schema.Literals(["account", "identity"]).annotate({
            description: "Breakdown to add.",
          }),
        ),
      },
      success: Usage,
      error: [InvalidRequest, NotFound, Unavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "Count mail, deliveries, Tunnel use and calls over time")
      .annotate(Tool, {
        name: "svc_usage_get",
        effect: "read",
      }),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Activity over time.") {}

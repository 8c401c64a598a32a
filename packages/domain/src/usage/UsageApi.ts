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

const count = (description: string) => Schema.Int.annotate({ description })
const millisOrNull = (description: string) => Schema.NullOr(Schema.Number).annotate({ description })

export const UsagePoint = Schema.Struct({
  at: Timestamp.annotate({ description: "The start of the hour or day (UTC)." }),
  mail_received: count("Messages stored in the Mailbox."),
  mail_sent: count("Messages accepted for sending. A message that needs approval counts when it is approved."),
  mail_refused: count("Incoming messages that were rejected because of their size or a full Mailbox."),
  deliveries_succeeded: count("Delivery attempts to Webhooks that got a 2xx response."),
  deliveries_failed: count("Delivery attempts to Webhooks that failed."),
  delivery_latency_ms: millisOrNull("Mean duration of the delivery attempts; null without attempts."),
  tunnel_requests: count("HTTP requests and TCP connections through the Tunnel."),
  tunnel_errors: count("HTTP requests that got a 5xx response, or none because no agent was connected."),
  tunnel_latency_ms: millisOrNull("Mean time to the first byte of the agent's response; null without responses."),
  tunnel_bytes_in: count("Bytes to the agent."),
  tunnel_bytes_out: count("Bytes from the agent."),
  api_calls: count("Calls of the API and of tools with a valid credential."),
  mailbox_bytes: Schema.NullOr(Schema.Int).annotate({
    description:
      "Largest size of the Mailbox when a message arrived; null without messages, and for the whole account.",
  }),
}).annotate({ identifier: "UsagePoint" })
export type UsagePoint = typeof UsagePoint.Type

export const UsageOfWebhook = Schema.Struct({
  at: Timestamp.annotate({ description: "The start of the hour or day (UTC)." }),
  webhook_id: Schema.String.annotate({ description: "The id of the Webhook." }),
  succeeded: count("Delivery attempts that got a 2xx response."),
  failed: count("Delivery attempts that failed."),
  latency_ms: millisOrNull("Mean duration of the attempts."),
}).annotate({ identifier: "UsageOfWebhook" })
export type UsageOfWebhook = typeof UsageOfWebhook.Type

export const Usage = Schema.Struct({
  starts_at: Timestamp.annotate({ description: "The start of the first hour or day." }),
  ends_at: Timestamp.annotate({ description: "The end of the last hour or day." }),
  step: Schema.Literals(["hour", "day"]).annotate({ description: "The length of a point." }),
  points: Schema.Array(UsagePoint).annotate({
    description: "Oldest first. An hour or day without any activity has no point.",
  }),
  webhooks: Schema.Array(UsageOfWebhook).annotate({
    description: "The deliveries of each Webhook, oldest first. Empty unless `identity` is given.",
  }),
  identities: Schema.Array(
    Schema.Struct({
      identity: Schema.String.annotate({ description: "The Handle of the Identity." }),
      at: Timestamp.annotate({ description: "The start of the hour or day (UTC)." }),
      activity: count("Messages, delivery attempts, requests through the Tunnel and API calls."),
    }).annotate({ identifier: "UsageOfIdentity" }),
  ).annotate({
    description: `The activity of the ${identitiesAtMost} most active Identities. Empty unless \`by\` is \`identity\`.`,
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

/** The delivery log of a Webhook (decisions.md "Resources"). */
import { Effect, Schema } from "effect"
import { DeliveryId, EventId } from "../IdSchemas.ts"
import { ShownUrl } from "../Text.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"

/** One request to the target. If no response arrived, `error` is a short stable code. */
export const Attempt = Schema.Struct({
  number: Schema.Int,
  started_at: Timestamp,
  duration_ms: Schema.Int,
  status_code: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.String),
  /** The first 1 KiB of the response body as text; null without a body. */
  response_body: Schema.NullOr(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
}).annotate({ identifier: "Attempt" })
export type Attempt = typeof Attempt.Type

export const DeliveryStatus = Schema.Literals(["queued", "delivered", "retrying", "failed"])
export type DeliveryStatus = typeof DeliveryStatus.Type

export const Delivery = Schema.Struct({
  id: DeliveryId,
  event_id: EventId,
  event_type: Schema.String,
  status: DeliveryStatus,
  replay: Schema.Boolean,
  attempts: Schema.Array(Attempt),
  next_attempt_at: TimestampOrNull,
  created_at: Timestamp,
}).annotate({ identifier: "Delivery" })
export type Delivery = typeof Delivery.Type

/** The request of the latest attempt of a delivery. It omits the signature, which needs a secret. */
export const DeliveryRequest = Schema.Struct({
  method: Schema.Literal("POST").annotate({ description: "The HTTP method." }),
  url: ShownUrl,
  headers: Schema.Record(Schema.String, Schema.String).annotate({
    description: "The header fields of the latest attempt, without the signature.",
  }),
  body: Schema.String.annotate({
    description:
      "The body of the latest attempt, byte for byte. Before the first attempt, the body of an attempt made now.",
  }),
}).annotate({ identifier: "DeliveryRequest" })
export type DeliveryRequest = typeof DeliveryRequest.Type

/** The delivery log of a Webhook (decisions.md "Resources"). */
import { Schema } from "effect"
import { DeliveryId, EventId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"

/** One request to the target; `error` is a short stable word when no status arrived. */
export const Attempt = Schema.Struct({
  number: Schema.Int,
  started_at: Timestamp,
  duration_ms: Schema.Int,
  status_code: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.String),
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
  next_attempt_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
}).annotate({ identifier: "Delivery" })
export type Delivery = typeof Delivery.Type

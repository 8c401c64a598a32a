/** Webhooks and their delivery log (decisions.md "Resources"). */
import { Schema } from "effect"
import { IdentityEventType } from "../events/Event.ts"
import { DeliveryId, EventId, WebhookId } from "../IdSchemas.ts"
import { Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

export { DeliveryId, WebhookId } from "../IdSchemas.ts"

/** Types of Events that concern an Identity, or `*` for all of them. */
export const Subscription = Schema.NonEmptyArray(Schema.Union([IdentityEventType, Schema.Literal("*")])).check(
  Schema.isMaxLength(32),
)

export const Webhook = Schema.Struct({
  id: WebhookId,
  url: Schema.String,
  event_types: Schema.Array(Schema.String),
  description: Schema.NullOr(Schema.String),
  status: Schema.Literals(["active", "disabled"]),
  created_at: Timestamp,
}).annotate({ identifier: "Webhook" })
export type Webhook = typeof Webhook.Type

export const NewWebhook = Schema.Struct({
  url: Text.check(Schema.isMaxLength(2048)),
  event_types: Subscription,
  description: Schema.optionalKey(Schema.NullOr(Text.check(Schema.isMaxLength(500)))),
}).annotate({ identifier: "NewWebhook" })
export type NewWebhook = typeof NewWebhook.Type

/** What may be changed of a Webhook; omitted members stay. */
export const WebhookPatch = Schema.Struct({
  url: Schema.optionalKey(NewWebhook.fields.url),
  event_types: Schema.optionalKey(Subscription),
  description: NewWebhook.fields.description,
  status: Schema.optionalKey(Webhook.fields.status),
}).annotate({ identifier: "WebhookPatch" })
export type WebhookPatch = typeof WebhookPatch.Type

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

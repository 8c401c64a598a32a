/** Webhooks (decisions.md "Resources"). */
import { Schema } from "effect"
import { IdentityEventType } from "../events/Event.ts"
import { WebhookId } from "../IdSchemas.ts"
import { ShownUrl, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

/** Types of Events of an Identity, or `*` for all of them. */
const Subscription = Schema.NonEmptyArray(Schema.Union([IdentityEventType, Schema.Literal("*")])).check(
  Schema.isMaxLength(32),
)

/** Maximum number of Webhooks of an Identity. Each Event queues a delivery for each of them. */
export const webhooksAtMost = 100

/** Why a Webhook delivers nothing: its creator was revoked, has expired, or may read none of its Events any more. */
const StoppedReason = Schema.Literals(["creator_revoked", "creator_expired", "creator_narrowed"])

export const Webhook = Schema.Struct({
  id: WebhookId,
  url: ShownUrl,
  event_types: Schema.Array(Schema.String),
  description: Schema.NullOr(Schema.String),
  status: Schema.Literals(["active", "disabled", "stopped"]),
  stopped_reason: Schema.NullOr(StoppedReason),
  failing_since: Schema.NullOr(Timestamp),
  created_at: Timestamp,
}).annotate({ identifier: "Webhook" })
export type Webhook = typeof Webhook.Type

export const NewWebhook = Schema.Struct({
  // The operation validates the target, since it has its own problem code.
  url: Text.annotate({ format: "uri" }).check(Schema.isMaxLength(2048)),
  event_types: Subscription,
  description: Schema.optionalKey(Schema.NullOr(Text.check(Schema.isMaxLength(500)))),
}).annotate({ identifier: "NewWebhook" })
export type NewWebhook = typeof NewWebhook.Type

/** A change of a Webhook; omitted members keep their values. */
export const WebhookPatch = Schema.Struct({
  url: Schema.optionalKey(NewWebhook.fields.url),
  event_types: Schema.optionalKey(Subscription),
  description: NewWebhook.fields.description,
  status: Schema.optionalKey(Schema.Literals(["active", "disabled"])),
}).annotate({ identifier: "WebhookPatch" })
export type WebhookPatch = typeof WebhookPatch.Type

/**
 * Returns whether a change decides where Events go, or that they go. The credential that makes such a change must be allowed to
 * read the Events, and becomes the creator of the Webhook.
 */
export const adopts = ({ url, event_types, status }: WebhookPatch): boolean =>
  url !== undefined || event_types !== undefined || status === "active"

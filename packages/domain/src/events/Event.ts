/** Every type of Event and its record (interface.md "Events", decisions.md "Events"). */
import { Schema } from "effect"
import { Uuid } from "../account/Account.ts"
import { Timestamp } from "../Timestamp.ts"

/** Types that concern one Identity; Webhooks may subscribe to them. */
export const identityEventTypes = [
  "identity.ready",
  "identity.failed",
  "email.received",
  "email.sent",
  "email.bounced",
  "email.refused",
  "email.recipient_blocked",
  "mail.stopped",
  "mail.started",
  "card.updated",
  "tunnel.connected",
  "tunnel.disconnected",
  "webhook.failed",
  "connector.connected",
  "connector.stopped",
  "connector.mention",
  "connector.reply",
  "connector.dm",
] as const

/** Org-level types reach no Webhook; the list is their only delivery route. */
export const orgEventTypes = [
  "identity.deleted",
  "tunnel.transfer_blocked",
  "api_key.created",
  "api_key.revoked",
  "limit.near",
  "account.deletion_started",
] as const

export const IdentityEventType = Schema.Literals(identityEventTypes)
export type IdentityEventType = typeof IdentityEventType.Type
export const EventType = Schema.Literals([...identityEventTypes, ...orgEventTypes])
export type EventType = typeof EventType.Type

export const EventId = Schema.String.check(
  Schema.isPattern(/^evt_[0-9a-hjkmnp-tv-z]{26}$/, { expected: "an Event id (evt_…)" }),
)

export const Event = Schema.Struct({
  id: EventId,
  type: EventType,
  created_at: Timestamp,
  identity_id: Schema.NullOr(Uuid),
  handle: Schema.NullOr(Schema.String),
  data: Schema.Record(Schema.String, Schema.Unknown),
}).annotate({ identifier: "Event" })
export type Event = typeof Event.Type

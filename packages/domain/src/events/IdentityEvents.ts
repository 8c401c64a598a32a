/**
 * The data of each Event that concerns one Identity; Webhooks may subscribe to them. It is JSON as stored, listed and
 * delivered, so a schema here transforms nothing: a date is its RFC 3339 text.
 */
import { Schema } from "effect"
import { CredentialKind } from "../account/Account.ts"
import { StoredCard } from "../card/Card.ts"
import { Capability, ConnectedVia } from "../connectors/Connector.ts"
import { PlatformName } from "../connectors/PlatformName.ts"
import { Post } from "../connectors/Post.ts"
import { StepName } from "../identity/Identity.ts"
import { Address, OriginVerdict } from "../mail/Message.ts"
import { DeliveryId, EventId, MessageId, WebhookId } from "../IdSchemas.ts"
import { Nothing } from "./EmptyData.ts"

const Instant = Schema.String.annotate({ format: "date-time" })

const identity = {
  "identity.ready": Nothing.annotate({ description: "The Identity is fully provisioned." }),
  "identity.failed": Schema.Struct({ step: StepName, error: Schema.String }).annotate({
    description: "Provisioning failed at a step. Retry it, or delete the Identity to remove what was created.",
  }),
}

const Switched = Schema.Struct({
  by: Schema.Union([CredentialKind, Schema.Literal("system")]),
  reason: Schema.NullOr(Schema.String),
})

/**
 * The message that an Event is about. `message_id` is its former name: everywhere else that is the Message-ID of the header.
 * Events of earlier versions have the former name only.
 */
const email = {
  email_id: Schema.optionalKey(MessageId),
  message_id: MessageId.annotate({ description: "The same as `email_id`, by its former name." }),
}
/** What a message says of itself; the rest is fetched with its `email_id`. */
const envelope = { ...email, subject: Schema.String, snippet: Schema.String, size: Schema.Int }

const mail = {
  "email.received": Schema.Struct({
    ...envelope,
    from: Schema.NullOr(Address),
    to: Schema.Array(Address),
    /** The first of `tags`; null if there are none. */
    tag: Schema.NullOr(Schema.String),
    /** The subaddress tags of the recipients. Events of earlier versions have `tag` only. */
    tags: Schema.optionalKey(
      Schema.Array(Schema.String).annotate({ description: "All subaddress tags that the message was sent to." }),
    ),
    origin: OriginVerdict,
    received_at: Instant,
  }).annotate({ description: "A message arrived in the Mailbox." }),
  "email.sent": Schema.Struct({
    ...envelope,
    from: Address,
    to: Schema.Array(Address),
    cc: Schema.Array(Address),
    bcc: Schema.Array(Address),
    sent_at: Instant,
  }).annotate({ description: "A message was handed over to the servers of all recipients." }),
  "email.bounced": Schema.Struct({
    ...email,
    recipient: Schema.String,
    /** `hard`: nothing will reach the address. `soft`: given up after the last retry, or refused for what the message is. */
    kind: Schema.Literals(["hard", "soft"]),
    /** The enhanced status code (RFC 3463), as in `5.1.1`. */
    status: Schema.NullOr(Schema.String),
    diagnostic: Schema.NullOr(Schema.String),
    bounced_at: Instant,
  }).annotate({ description: "A message could not be delivered to one recipient." }),
  "email.refused": Schema.Struct({
    reason: Schema.Literals(["size", "full"]),
    /** The sender of the one at hand; empty where it named none. */
    from: Schema.String,
    /** That one and those turned away since the Event before. */
    count: Schema.Int,
  }).annotate({ description: "Incoming mail was refused. Raised at most once an hour, with a count." }),
  "email.recipient_blocked": Schema.Struct({
    subject: Schema.String,
    recipients: Schema.Array(
      Schema.Struct({ address: Schema.String, reason: Schema.Literals(["not_allowed", "expired", "suppressed"]) }),
    ),
  }).annotate({ description: "A message was not sent because a recipient is not an Allowed Recipient." }),
  "email.approval_requested": Schema.Struct({
    ...envelope,
    to: Schema.Array(Address),
    cc: Schema.Array(Address),
    bcc: Schema.Array(Address),
    expires_at: Instant,
  }).annotate({ description: "A message waits for a person's approval." }),
  "email.approved": Schema.Struct({
    ...email,
    by: Schema.Union([CredentialKind, Schema.Literal("system")]),
    /** The SHA-256 of the content that was approved, in hexadecimal. */
    content_sha256: Schema.optionalKey(Schema.String),
  }).annotate({
    description: "A person approved a message, and it is queued for sending.",
  }),
  "email.approval_refused": Schema.Struct({
    ...email,
    by: Schema.Union([CredentialKind, Schema.Literal("system")]),
    /** `expired` where nobody decided within 7 days. */
    reason: Schema.NullOr(Schema.String),
  }).annotate({ description: "A message was not approved and will not be sent." }),
  "mail.stopped": Switched.annotate({ description: "Outgoing mail was stopped." }),
  "mail.started": Switched.annotate({ description: "Outgoing mail was resumed." }),
}

const tunnel = {
  "tunnel.connected": Nothing.annotate({ description: "The first link of the Tunnel connected." }),
  "tunnel.disconnected": Nothing.annotate({ description: "The last link of the Tunnel disconnected." }),
}

const card = {
  "card.updated": Schema.Struct({
    changed: Schema.Array(Schema.Literals(Object.keys(StoredCard.fields) as ReadonlyArray<keyof StoredCard>)),
  }).annotate({ description: "The card was changed." }),
}

const webhook = {
  "webhook.failed": Schema.Struct({
    webhook_id: WebhookId,
    delivery_id: DeliveryId,
    event_id: EventId,
    event_type: Schema.String,
    attempts: Schema.Int,
    /** Of the last attempt; null when no status arrived, and `error` says why. */
    status_code: Schema.NullOr(Schema.Int),
    error: Schema.NullOr(Schema.String),
  }).annotate({ description: "The last attempt of a delivery failed. Other Webhooks receive this Event." }),
}

const account = { platform: PlatformName, account: Schema.String }

/** A post of somebody else, as the Connector's reading endpoints show it. */
const HeardPost = Schema.Struct({ ...Post.fields, created_at: Instant })
const Heard = Schema.Struct({ ...account, post: HeardPost, at: Instant })

const connectors = {
  "connector.connected": Schema.Struct({
    ...account,
    account_id: Schema.String,
    service: Schema.String,
    connected_via: ConnectedVia,
    capabilities: Schema.Array(Capability),
  }).annotate({ description: "A platform account was connected." }),
  "connector.stopped": Schema.Struct({
    ...account,
    /** What was wrong, in the platform's own words where it said any. */
    error: Schema.String,
    /** What the account holder does to have it back. */
    remedy: Schema.optionalKey(Schema.String),
  }).annotate({
    description:
      "The platform refused the Connector's credential, or the profile no longer says that the account is automated. It stays stopped until this is corrected.",
  }),
  "connector.recovered": Schema.Struct({ ...account, account_id: Schema.String, service: Schema.String }).annotate({
    description: "A stopped Connector works again.",
  }),
  "connector.mention": Heard.annotate({ description: "A post mentions the connected account." }),
  "connector.reply": Heard.annotate({ description: "A post replies to a post of the connected account." }),
  "connector.dm": Heard.annotate({ description: "A direct message arrived." }),
}

export const identityEvents = { ...identity, ...mail, ...card, ...tunnel, ...webhook, ...connectors } as const

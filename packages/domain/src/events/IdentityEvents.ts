/**
 * The data of each Event that concerns an Identity. Webhooks can subscribe to these Events. The data is stored, listed
 * and delivered as JSON, so the schemas transform nothing: a date is an RFC 3339 text.
 */
import { Schema } from "effect"
import { CredentialKind } from "../account/Account.ts"
import { StoredCard } from "../card/Card.ts"
import { Capability, ConnectedVia, PlatformName } from "../connectors/Connector.ts"
import { Post } from "../connectors/Post.ts"
import { StepName } from "../identity/Identity.ts"
import { Address, OriginVerdict, ProvedAgent } from "../mail/Message.ts"
import { proofEvents } from "../proof/ProofEvents.ts"
import { DeliveryId, EventId, MessageId, WebhookId } from "../IdSchemas.ts"

/** The data of an Event whose type says everything. */
export const Nothing = Schema.Record(Schema.String, Schema.Never)

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
 * The message of an Event. `message_id` is its former name, which elsewhere means the Message-ID header field. Events
 * of earlier versions contain only the former name.
 */
const email = {
  email_id: Schema.optionalKey(MessageId),
  message_id: MessageId.annotate({ description: "The same as `email_id`, under its former name." }),
}
/** A summary of the message; `email_id` retrieves the rest. */
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
  "email.agent_verified": Schema.Struct({ ...email, from: Address, agent: ProvedAgent }).annotate({
    description: "The agent that sent a received message was verified.",
  }),
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
    /**
     * `hard`: the address does not exist or accepts no mail. `soft`: the last retry failed, or the message was rejected
     * for its content.
     */
    kind: Schema.Literals(["hard", "soft"]),
    /** The enhanced status code (RFC 3463), such as `5.1.1`. */
    status: Schema.NullOr(Schema.String),
    diagnostic: Schema.NullOr(Schema.String),
    bounced_at: Instant,
  }).annotate({ description: "A message could not be delivered to one recipient." }),
  "email.refused": Schema.Struct({
    reason: Schema.Literals(["size", "full"]),
    /** Sender of the latest rejected message; empty if it had none. */
    from: Schema.String,
    /** Number of messages rejected since the previous Event, including this one. */
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
    /** SHA-256 of the approved content in hexadecimal. */
    content_sha256: Schema.optionalKey(Schema.String),
  }).annotate({
    description: "A person approved a message, and it is queued for sending.",
  }),
  "email.approval_refused": Schema.Struct({
    ...email,
    by: Schema.Union([CredentialKind, Schema.Literal("system")]),
    /** `expired` if nobody decided within 7 days. */
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
    /** Status of the last attempt; null if no response arrived, as `error` explains. */
    status_code: Schema.NullOr(Schema.Int),
    error: Schema.NullOr(Schema.String),
  }).annotate({ description: "The last attempt of a delivery failed. Other Webhooks receive this Event." }),
}

const account = { platform: PlatformName, account: Schema.String }

/** A post of another author, as the read endpoints of Connectors return it. */
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
    /** The error, in the platform's own words if it gave any. */
    error: Schema.String,
    /** How the account holder can restore the connection. */
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

export const identityEvents = {
  ...identity,
  ...mail,
  ...card,
  ...tunnel,
  ...webhook,
  ...connectors,
  ...proofEvents,
} as const

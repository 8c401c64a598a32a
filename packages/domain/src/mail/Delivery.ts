/** The delivery state of an outgoing message per recipient, and its approval. */
import { Schema } from "effect"
import { CredentialKind } from "../account/Account.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"

/** What a mail server said last; `status` is the enhanced code (RFC 3463). */
export const Reply = Schema.Struct({
  code: Schema.NullOr(Schema.Int),
  status: Schema.NullOr(Schema.String),
  text: Schema.String,
  host: Schema.NullOr(Schema.String),
}).annotate({ identifier: "SmtpReply" })

export const Delivery = Schema.Struct({
  address: Schema.String,
  status: Schema.Literals(["queued", "sent", "deferred", "bounced"]),
  reply: Schema.NullOr(Reply),
  /** Why it is kept, where nothing was tried. */
  reason: Schema.NullOr(Schema.String),
  next_attempt_at: TimestampOrNull,
  updated_at: Timestamp,
}).annotate({ identifier: "RecipientDelivery" })
export type Delivery = typeof Delivery.Type

/** Who asked for a message that waits for a person, and what was decided; `expired` where nobody did. */
export const Approval = Schema.Struct({
  requested_at: Timestamp,
  requested_by: Schema.NullOr(Schema.String),
  expires_at: Timestamp,
  decided_at: TimestampOrNull,
  decided_by: Schema.NullOr(Schema.Union([CredentialKind, Schema.Literal("system")])),
  reason: Schema.NullOr(Schema.String),
  /** The SHA-256 of the content that was decided on; null while the message waits. */
  content_sha256: Schema.optionalKey(Schema.NullOr(Schema.String)),
}).annotate({ identifier: "Approval" })
export type Approval = typeof Approval.Type

/** What a message that goes out has beside what every message has. */
export const outbound = {
  /** `done`: every recipient was handed over or has bounced. */
  status: Schema.Literals(["awaiting_approval", "refused", "queued", "done"]),
  approval: Schema.NullOr(Approval),
  delivery: Schema.Array(Delivery),
}
export const Outbound = Schema.Struct(outbound).annotate({ identifier: "Outbound" })
export type Outbound = typeof Outbound.Type

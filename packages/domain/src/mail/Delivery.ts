/** The approval of an outgoing message, and its delivery state for each recipient. */
import { Schema } from "effect"
import { CredentialKind } from "../account/Account.ts"
import { Timestamp, TimestampOrNull } from "../Timestamp.ts"

/** The latest reply of a mail server; `status` is the enhanced status code (RFC 3463). */
const Reply = Schema.Struct({
  code: Schema.NullOr(Schema.Int),
  status: Schema.NullOr(Schema.String),
  text: Schema.String,
  host: Schema.NullOr(Schema.String),
}).annotate({ identifier: "SmtpReply" })

export const Delivery = Schema.Struct({
  address: Schema.String,
  status: Schema.Literals(["queued", "sent", "deferred", "bounced"]),
  reply: Schema.NullOr(Reply),
  /** Why the message is held, if no delivery was attempted. */
  reason: Schema.NullOr(Schema.String),
  next_attempt_at: TimestampOrNull,
  updated_at: Timestamp,
}).annotate({ identifier: "RecipientDelivery" })
export type Delivery = typeof Delivery.Type

/** The request for an approval, and the decision; `expired` if nobody decided. */
const Approval = Schema.Struct({
  requested_at: Timestamp,
  requested_by: Schema.NullOr(Schema.String),
  expires_at: Timestamp,
  decided_at: TimestampOrNull,
  decided_by: Schema.NullOr(Schema.Union([CredentialKind, Schema.Literal("system")])),
  reason: Schema.NullOr(Schema.String),
  /** SHA-256 of the content that was decided on; null while the message awaits approval. */
  content_sha256: Schema.optionalKey(Schema.NullOr(Schema.String)),
}).annotate({ identifier: "Approval" })
type Approval = typeof Approval.Type

/** Additional members of an outgoing message. */
export const outbound = {
  /** `done`: the message was handed over or bounced for every recipient. */
  status: Schema.Literals(["awaiting_approval", "refused", "queued", "done"]),
  approval: Schema.NullOr(Approval),
  delivery: Schema.Array(Delivery),
}
export const Outbound = Schema.Struct(outbound).annotate({ identifier: "Outbound" })
export type Outbound = typeof Outbound.Type

import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { NotFound } from "../problems/Problem.ts"
import { FlagChange, Flagged, limits } from "./Flags.ts"
import { Address, Attachment, Header, OriginVerdict } from "./Message.ts"

/** The Mailbox does not take this message now or ever. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", {
  reason: Schema.Literals(["full", "gone", "not_yet"]),
}) {}

/** A message's bodies; absent from a `ReceiveMail` whose gateway stored them beforehand because they are large. */
export const Content = Schema.Struct({
  raw: Schema.Uint8Array,
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  headers: Schema.Array(Header),
  search_text: Schema.String,
  /** What IMAP answers of the parts; an older process says nothing of it. */
  structure: Schema.optional(Schema.String),
})
export type Content = typeof Content.Type

export const ReceivedMail = Schema.Struct({
  message_id: Uuid,
  envelope_from: Schema.String,
  recipient: Schema.String,
  /** The first of `tags`, which is all that an older process knows of them. */
  tag: Schema.NullOr(Schema.String),
  /** The subaddress tags of all addresses that the message was sent to; undefined from an older process. */
  tags: Schema.optional(Schema.Array(Schema.String)),
  /** SHA-256 of DATA as received. */
  sha256: Schema.Uint8Array,
  /** The key that a transaction and its retry share: a hash of the Mailbox, the tags, the envelope sender and DATA. */
  key: Schema.optional(Schema.Uint8Array),
  size: Schema.Int,
  received_at: Schema.Date,
  /** In which a program gave the time: minutes east of UTC. */
  received_zone: Schema.optional(Schema.Int),
  origin: OriginVerdict,
  from: Schema.NullOr(Address),
  to: Schema.Array(Address),
  cc: Schema.Array(Address),
  bcc: Schema.Array(Address),
  reply_to: Schema.Array(Address),
  subject: Schema.String,
  snippet: Schema.String,
  message_id_header: Schema.NullOr(Schema.String),
  in_reply_to: Schema.NullOr(Schema.String),
  references: Schema.Array(Schema.String),
  attachments: Schema.Array(Attachment),
  content: Schema.NullOr(Content),
})
export type ReceivedMail = typeof ReceivedMail.Type

/**
 * What became of a message that was taken: stored, or `repeated`, when a transaction of the same key was stored before and
 * nobody has said yet that it was answered with 250.
 */
export const ReceiptOfMail = Schema.Struct({ repeated: Schema.Boolean })
export type ReceiptOfMail = typeof ReceiptOfMail.Type

/** As whoever asks made it: it is judged where it comes from another process, and not once more in its own. */
const handedOver = ReceivedMail.pipe(
  Schema.decodeTo(Schema.declare((mail): mail is ReceivedMail => typeof mail === "object" && mail !== null)),
)

export const ReceiveMail = Rpc.make("ReceiveMail", {
  payload: handedOver,
  // An older process says nothing of what became of it: then it was stored.
  success: Schema.Union([ReceiptOfMail, Schema.Void]),
  error: failures(MailRefused),
})

/** Mail was turned away before it became a message. */
export const RefuseMail = Rpc.make("RefuseMail", {
  payload: { reason: Schema.Literals(["size", "full"]), from: Schema.String },
  error: failures(),
})

export const RemoveMessage = Rpc.make("RemoveMessage", {
  payload: { ...tenant, message_id: Uuid },
  error: failures(NotFound),
})

/** At most so many at once, so that neither the message nor its statement is large; ask again for more. */
const MessageIds = Schema.Array(Uuid).check(Schema.isMaxLength(limits.messages))

/** Removes several messages in one commit; those that are gone already are passed over. */
export const RemoveMessages = Rpc.make("RemoveMessages", {
  payload: { ...tenant, message_ids: MessageIds },
  success: Schema.Struct({ removed: Schema.Array(Uuid), modseq: Schema.Int }),
  error: failures(NotFound),
})

/**
 * Changes the marks of several messages in one commit. Repeating it changes nothing more. A message that is gone is passed
 * over; one that the change would give more than the labels it can have is left as it is, and stands in `overfull`.
 */
export const ChangeFlags = Rpc.make("ChangeFlags", {
  payload: {
    ...tenant,
    message_ids: MessageIds,
    change: FlagChange,
    /** Leaves alone what was changed after this value of the Mailbox's change counter (RFC 7162 section 3.1.3). */
    unchanged_since: Schema.optional(Schema.Int),
  },
  success: Schema.Struct({
    /** Every message that is now as was asked, also those that were before. */
    messages: Schema.Array(Flagged),
    /** Messages that `unchanged_since` left alone. */
    modified: Schema.Array(Uuid),
    overfull: Schema.Array(Uuid),
    /** The Mailbox's change counter. */
    modseq: Schema.Int,
    /** The audit log says it; an older process leaves that to who asked. */
    noted: Schema.optionalKey(Schema.Boolean),
  }),
  error: failures(NotFound),
})

export const MailboxMessages = RpcGroup.make(ReceiveMail, RefuseMail, RemoveMessage, RemoveMessages, ChangeFlags)

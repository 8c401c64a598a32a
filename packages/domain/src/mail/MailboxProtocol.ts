import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { NotFound } from "../problems/Problem.ts"
import { FlagChange, Flagged, limits } from "./Flags.ts"
import { Address, Attachment, Header, OriginVerdict } from "./Message.ts"

/** The Mailbox rejects the message, temporarily or permanently. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", {
  reason: Schema.Literals(["full", "gone", "not_yet"]),
}) {}

/** The bodies of a message. `ReceiveMail` omits them if the gateway stored them before because they are large. */
export const Content = Schema.Struct({
  raw: Schema.Uint8Array,
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  headers: Schema.Array(Header),
  search_text: Schema.String,
  /** The IMAP body structure; an older process omits it. */
  structure: Schema.optional(Schema.String),
})
export type Content = typeof Content.Type

/** The DID in a signed field `Agent-Identity`, and the domain whose signature covers the field. */
const AgentClaim = Schema.Struct({ did: Schema.String, domain: Schema.String })
export type AgentClaim = typeof AgentClaim.Type

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
  /** Time zone of the client's timestamp, in minutes east of UTC. */
  received_zone: Schema.optional(Schema.Int),
  origin: OriginVerdict,
  /** A signed DID whose document must still be read. */
  agent_claim: Schema.optional(AgentClaim),
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
 * The result of an accepted message. `repeated` means that a transaction with the same key was stored before and its
 * 250 reply is not known to have been sent.
 */
export const ReceiptOfMail = Schema.Struct({ repeated: Schema.Boolean })
export type ReceiptOfMail = typeof ReceiptOfMail.Type

/** A message as another module composed it. It is validated when it crosses processes, and not again within one. */
const handedOver = ReceivedMail.pipe(
  Schema.decodeTo(Schema.declare((mail): mail is ReceivedMail => typeof mail === "object" && mail !== null)),
)

export const ReceiveMail = Rpc.make("ReceiveMail", {
  payload: handedOver,
  // An older process returns nothing; the message was then stored.
  success: Schema.Union([ReceiptOfMail, Schema.Void]),
  error: failures(MailRefused),
})

/** Records mail that was rejected before it became a message. */
const RefuseMail = Rpc.make("RefuseMail", {
  payload: { reason: Schema.Literals(["size", "full"]), from: Schema.String },
  error: failures(),
})

const RemoveMessage = Rpc.make("RemoveMessage", {
  payload: { ...tenant, message_id: Uuid },
  error: failures(NotFound),
})

/** A batch of ids. Its limit keeps the message and its statement small. */
const MessageIds = Schema.Array(Uuid).check(Schema.isMaxLength(limits.messages))

/** Removes several messages in one commit. Messages that no longer exist are skipped. */
const RemoveMessages = Rpc.make("RemoveMessages", {
  payload: { ...tenant, message_ids: MessageIds },
  success: Schema.Struct({ removed: Schema.Array(Uuid), modseq: Schema.Int }),
  error: failures(NotFound),
})

/**
 * Changes the flags of several messages in one commit. The operation is idempotent. Messages that no longer exist are
 * skipped; a message that would exceed its limit of labels stays unchanged and is listed in `overfull`.
 */
const ChangeFlags = Rpc.make("ChangeFlags", {
  payload: {
    ...tenant,
    message_ids: MessageIds,
    change: FlagChange,
    /** Skips messages that changed after this value of the Mailbox's change counter (RFC 7162 section 3.1.3). */
    unchanged_since: Schema.optional(Schema.Int),
  },
  success: Schema.Struct({
    /** Every message that now has the requested flags, including messages that had them before. */
    messages: Schema.Array(Flagged),
    /** Messages that were skipped because of `unchanged_since`. */
    modified: Schema.Array(Uuid),
    overfull: Schema.Array(Uuid),
    /** The Mailbox's change counter. */
    modseq: Schema.Int,
  }),
  error: failures(NotFound),
})

export const MailboxMessages = RpcGroup.make(ReceiveMail, RefuseMail, RemoveMessage, RemoveMessages, ChangeFlags)

/** Messages to the Identity actor about outgoing mail. */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import {
  Conflict,
  IdentityNotReady,
  MailPaused,
  MessageInvalid,
  NotFound,
  RateLimited,
  RecipientNotAllowed,
} from "../problems/Problem.ts"
import { Content } from "./MailboxProtocol.ts"
import { Address, envelope } from "./Message.ts"

/** A composed message: it contains its disclosure, and each recipient is one addr-spec. */
export const ComposedMail = Schema.Struct({
  message_id: Uuid,
  /** `<…@mail_domain>`. */
  message_id_header: Schema.String,
  ...envelope,
  from: Address,
  /** Bytes of the message, and their SHA-256. */
  size: Schema.Int,
  sha256: Schema.Uint8Array,
  /** Null if the content is large and was stored before. */
  content: Schema.NullOr(Content),
})
export type ComposedMail = typeof ComposedMail.Type

/** A recipient and its position in the request (`/to/0`), which a rejection names. */
export const Recipient = Schema.Struct({ address: Schema.String, path: Schema.String })
export type Recipient = typeof Recipient.Type

/** The state of an accepted message: `queued` or awaiting approval. */
export const Acceptance = Schema.Struct({
  status: Schema.Literals(["queued", "awaiting_approval"]),
  message_id_header: Schema.String,
  /** The existing message, if this one was submitted before. */
  message_id: Schema.optionalKey(Uuid),
})
export type Acceptance = typeof Acceptance.Type

/**
 * Stores a message in the Mailbox and the outbox in one commit. The command determines the id of the message, so a
 * duplicate is sent once. `draft_version` means that the message was the draft of the same id at this version, which
 * the commit removes.
 */
export const SendMail = Rpc.make("SendMail", {
  payload: {
    ...tenant,
    mail: ComposedMail,
    recipients: Schema.Array(Recipient),
    /** The message that this one replies to, whose thread it joins. If null, its References decide. */
    answers: Schema.NullOr(Uuid),
    draft_version: Schema.NullOr(Schema.Int),
    /** Identifies a retry by a mail program; an older process omits it. */
    submission_key: Schema.optionalKey(Schema.Uint8Array),
  },
  success: Acceptance,
  error: failures(NotFound, IdentityNotReady, MailPaused, RecipientNotAllowed, RateLimited, Conflict, MessageInvalid),
})

/**
 * Records a bounce that a mail server reported later (RFC 3464). It is idempotent and ignores messages that this
 * Identity never sent. `hard` means that the address accepts no mail and is suppressed.
 */
export const RecordBounce = Rpc.make("RecordBounce", {
  payload: {
    /** The uuid of the message. */
    message_id: Uuid,
    /** Null if the bounce names no recipient; it then concerns the whole outbox row. */
    recipient: Schema.NullOr(Schema.String),
    /** The outbox row, if the bounce address contains it. */
    outbox_id: Schema.NullOr(Uuid),
    /** The enhanced status code, such as `5.1.1`. */
    status: Schema.NullOr(Schema.String),
    /** The reply of the server in one line. */
    diagnostic: Schema.NullOr(Schema.String),
    hard: Schema.Boolean,
  },
  error: failures(),
})

/** Approves or rejects a message that awaits approval. */
export const DecideMail = Rpc.make("DecideMail", {
  payload: {
    ...tenant,
    /** The uuid of the message. */
    message_id: Uuid,
    approve: Schema.Boolean,
    reason: Schema.NullOr(Schema.String),
    /** SHA-256 in hexadecimal of the content that was decided on; an older process omits it. */
    content_sha256: Schema.optionalKey(Schema.String),
  },
  error: failures(NotFound, IdentityNotReady, MailPaused, RecipientNotAllowed, Conflict),
})

export const SendingMessages = RpcGroup.make(SendMail, RecordBounce, DecideMail)

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

/** A message as it was composed: its disclosure is in it, its recipients are one addr-spec each. */
export const ComposedMail = Schema.Struct({
  message_id: Uuid,
  /** `<…@mail_domain>`. */
  message_id_header: Schema.String,
  ...envelope,
  from: Address,
  /** Bytes of the message, and their SHA-256. */
  size: Schema.Int,
  sha256: Schema.Uint8Array,
  /** Absent where it is large and was stored beforehand. */
  content: Schema.NullOr(Content),
})
export type ComposedMail = typeof ComposedMail.Type

/** Where each recipient stands in the request (`/to/0`), for a refusal that names it. */
export const Recipient = Schema.Struct({ address: Schema.String, path: Schema.String })
export type Recipient = typeof Recipient.Type

/** What became of a message: `queued`, or it waits for a person. */
export const Acceptance = Schema.Struct({
  status: Schema.Literals(["queued", "awaiting_approval"]),
  message_id_header: Schema.String,
  /** The message that stands for it, where it was submitted before. */
  message_id: Schema.optionalKey(Uuid),
})
export type Acceptance = typeof Acceptance.Type

/**
 * Takes a message into the Mailbox and the outbox in one commit. The id of the message is the command's: one that comes
 * twice is sent once. `draft_version`: it was the draft of the same id, at this version, which goes with the commit.
 */
export const SendMail = Rpc.make("SendMail", {
  payload: {
    ...tenant,
    mail: ComposedMail,
    recipients: Schema.Array(Recipient),
    /** The message it answers, whose thread it joins; its references decide where there is none. */
    answers: Schema.NullOr(Uuid),
    draft_version: Schema.NullOr(Schema.Int),
    /** What a mail program's repeat of it would have in common with it; an older process says nothing of it. */
    submission_key: Schema.optionalKey(Schema.Uint8Array),
  },
  success: Acceptance,
  error: failures(NotFound, IdentityNotReady, MailPaused, RecipientNotAllowed, RateLimited, Conflict, MessageInvalid),
})

/**
 * A message did not reach a recipient, as a mail server told us afterwards (RFC 3464). Repeating it changes nothing, and
 * one about what this Identity never sent is forgotten. `hard`: nothing will reach the address, which is suppressed.
 */
export const RecordBounce = Rpc.make("RecordBounce", {
  payload: {
    /** The uuid of the message. */
    message_id: Uuid,
    /** Null where the bounce names none: then it is about all of the outbox row. */
    recipient: Schema.NullOr(Schema.String),
    /** The outbox row, where the bounce address told it. */
    outbox_id: Schema.NullOr(Uuid),
    /** The enhanced status code, as in `5.1.1`. */
    status: Schema.NullOr(Schema.String),
    /** The server's reply, in one line. */
    diagnostic: Schema.NullOr(Schema.String),
    hard: Schema.Boolean,
  },
  error: failures(),
})

/** A person's word on a message that waits for it. */
export const DecideMail = Rpc.make("DecideMail", {
  payload: {
    ...tenant,
    /** The uuid of the message. */
    message_id: Uuid,
    approve: Schema.Boolean,
    reason: Schema.NullOr(Schema.String),
    /** The SHA-256 of the content that was decided on, in hexadecimal; an older process does not tell it. */
    content_sha256: Schema.optionalKey(Schema.String),
  },
  error: failures(NotFound, IdentityNotReady, MailPaused, RecipientNotAllowed, Conflict),
})

export const SendingMessages = RpcGroup.make(SendMail, RecordBounce, DecideMail)

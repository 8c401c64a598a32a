import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { NotFound } from "../problems/Problem.ts"
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
})
export type Content = typeof Content.Type

export const ReceivedMail = Schema.Struct({
  message_id: Uuid,
  envelope_from: Schema.String,
  recipient: Schema.String,
  tag: Schema.NullOr(Schema.String),
  /** SHA-256 of DATA as received: with the envelope sender it recognises a repeat of the same transaction. */
  sha256: Schema.Uint8Array,
  size: Schema.Int,
  received_at: Schema.Date,
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

export const ReceiveMail = Rpc.make("ReceiveMail", { payload: ReceivedMail, error: failures(MailRefused) })

/** Mail was turned away before it became a message. */
export const RefuseMail = Rpc.make("RefuseMail", {
  payload: { reason: Schema.Literals(["size", "full"]), from: Schema.String },
  error: failures(),
})

export const RemoveMessage = Rpc.make("RemoveMessage", {
  payload: { ...tenant, message_id: Uuid },
  error: failures(NotFound),
})

export const MailboxMessages = RpcGroup.make(ReceiveMail, RefuseMail, RemoveMessage)

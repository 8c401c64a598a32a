/** Conversations of a Mailbox (decisions.md "Additions of the second half"). */
import { Schema } from "effect"
import { ThreadId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"
import { Address, MessageSummary } from "./Message.ts"

export const limits = { participants: 20, textReply: 4_000 }

export const Thread = Schema.Struct({
  id: ThreadId,
  /** Subject of the latest message, without prefixes such as `Re:`. */
  subject: Schema.String,
  /** Up to 20 distinct authors and recipients of the latest 20 messages. */
  participants: Schema.Array(Address),
  messages: Schema.Int,
  /** Number of received messages without the flag `seen`. */
  unread: Schema.Int,
  last_message_at: Timestamp,
  /** The first 200 characters of the latest message. */
  snippet: Schema.String,
}).annotate({ identifier: "Thread" })
export type Thread = typeof Thread.Type

export const ThreadMessage = Schema.Struct({
  ...MessageSummary.fields,
  /** The text of the message without quotes and signature, up to 4,000 characters; null if it has no text. */
  text_reply: Schema.NullOr(Schema.String),
}).annotate({ identifier: "ThreadMessage" })
export type ThreadMessage = typeof ThreadMessage.Type

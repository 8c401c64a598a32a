/** Conversations of a Mailbox (decisions.md "Additions of the second half"). */
import { Schema } from "effect"
import { ThreadId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"
import { Address, MessageSummary } from "./Message.ts"

export const limits = { participants: 20, textReply: 4_000 }

export const Thread = Schema.Struct({
  id: ThreadId,
  /** That of the latest message, without `Re:` and its like. */
  subject: Schema.String,
  /** Distinct authors and recipients of the latest 20 messages, at most 20. */
  participants: Schema.Array(Address),
  messages: Schema.Int,
  /** Messages that came in and are not marked as seen. */
  unread: Schema.Int,
  last_message_at: Timestamp,
  /** The first 200 characters of the latest message. */
  snippet: Schema.String,
}).annotate({ identifier: "Thread" })
export type Thread = typeof Thread.Type

export const ThreadMessage = Schema.Struct({
  ...MessageSummary.fields,
  /** What its author wrote, without quotes and signature, at most 4,000 characters; null where it has no text. */
  text_reply: Schema.NullOr(Schema.String),
}).annotate({ identifier: "ThreadMessage" })
export type ThreadMessage = typeof ThreadMessage.Type

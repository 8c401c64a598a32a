/**
 * Messages of a Mailbox (decisions.md "Resources"). Strings contain no NUL and no lone surrogates, which the store
 * rejects.
 */
import { Schema } from "effect"
import { MessageId, ThreadId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"
import { AnyCaseLabel, limits } from "./Flags.ts"
import { outbound } from "./Delivery.ts"

/*
 * Members have the order in which the store writes them as JSON (by length, then alphabetically). Lists of messages are
 * sent as the store returns them (`MessageRows`), and a single message looks the same.
 */

export const Address = Schema.Struct({ name: Schema.NullOr(Schema.String), address: Schema.String })
export type Address = typeof Address.Type

/**
 * The agent whose mail a message is: the domain of `From` signed the field `Agent-Identity`, and the document of the DID
 * in it names the address of `From`.
 */
export const ProvedAgent = Schema.Struct({
  did: Schema.String,
  /** The domain whose DKIM signature covers the field; null for mail of an Identity of this service. */
  domain: Schema.NullOr(Schema.String),
  checked_at: Schema.String.annotate({ format: "date-time" }),
}).annotate({ identifier: "ProvedAgent" })
export type ProvedAgent = typeof ProvedAgent.Type

/**
 * Whether the domain of `From` really sent the message, with the results of SPF, DKIM and DMARC: result words of RFC
 * 8601, or `internal` for mail of an Identity of this service, which needs no check.
 */
export const OriginVerdict = Schema.Struct({
  spf: Schema.String,
  dkim: Schema.String,
  /** Absent if no agent is proved. */
  agent: Schema.optionalKey(ProvedAgent),
  dmarc: Schema.String,
  domain: Schema.NullOr(Schema.String),
  verdict: Schema.Literals(["verified", "failed", "unverified", "error"]),
}).annotate({ identifier: "OriginVerdict" })
export type OriginVerdict = typeof OriginVerdict.Type

/** An attachment; `size` is its decoded size in bytes. */
export const Attachment = Schema.Struct({
  size: Schema.Int,
  index: Schema.Int,
  filename: Schema.NullOr(Schema.String),
  content_type: Schema.String,
}).annotate({ identifier: "Attachment" })
export type Attachment = typeof Attachment.Type

/** A link in a message. `deceptive` means that its text names a different host than its target. */
export const Link = Schema.Struct({
  url: Schema.String,
  text: Schema.String,
  deceptive: Schema.Boolean,
}).annotate({ identifier: "Link" })
export type Link = typeof Link.Type

/** Maximum bytes of text in one response. Longer texts are read in several calls. */
export const attachmentTextAtMost = 16 * 1024

/** The text of an attachment. */
export const AttachmentText = Schema.Struct({
  ...Attachment.fields,
  text: Schema.NullOr(Schema.String).annotate({
    description: "The text from `offset` on; null if the attachment is not text.",
  }),
  offset: Schema.Int.annotate({ description: "Offset of this part in bytes." }),
  next_offset: Schema.NullOr(Schema.Int).annotate({ description: "Offset of the next part; null at the end." }),
  truncated: Schema.Boolean.annotate({
    description:
      "Whether more follows. If `next_offset` is null, the rest is beyond the first MiB (256 KiB for HTML), which is the maximum that is read.",
  }),
}).annotate({ identifier: "AttachmentText" })
export type AttachmentText = typeof AttachmentText.Type

export const Header = Schema.Struct({ name: Schema.String, value: Schema.String }).annotate({ identifier: "Header" })
export type Header = typeof Header.Type

/** The header and metadata of a message, without its bodies. */
const people = {
  cc: Schema.Array(Address),
  to: Schema.Array(Address),
  bcc: Schema.Array(Address),
  from: Schema.NullOr(Address),
}
const words = {
  /** The first 200 characters of the text, with collapsed white space. */
  snippet: Schema.String,
  subject: Schema.String,
  reply_to: Schema.Array(Address),
  references: Schema.Array(Schema.String),
  attachments: Schema.Array(Attachment),
  in_reply_to: Schema.NullOr(Schema.String),
}
export const envelope = { ...people, ...words }

/** The decoded content of an incoming message. */
export const ParsedMail = Schema.Struct({
  ...envelope,
  message_id: Schema.NullOr(Schema.String),
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  headers: Schema.Array(Header),
  /** The text that searches match (`SearchText`). */
  search_text: Schema.String,
  /** The IMAP body structure, as the gateway computes it. */
  structure: Schema.optional(Schema.String),
})
export type ParsedMail = typeof ParsedMail.Type

/** The part of a message that the store keeps as JSON besides its columns. */
export const StoredSummary = Schema.Struct({ ...people, origin: OriginVerdict, ...words })
export type StoredSummary = typeof StoredSummary.Type

/** Flags and labels: IMAP's \\Seen, \\Flagged and keywords. Reading a message in the API changes none of them. */
const marks = {
  seen: Schema.Boolean,
  flagged: Schema.Boolean,
  labels: Schema.Array(Schema.String),
}

const summary = {
  id: MessageId,
  direction: Schema.Literals(["inbound", "outbound"]),
  thread_id: ThreadId,
  message_id: Schema.NullOr(Schema.String),
  tag: Schema.NullOr(Schema.String),
  tags: Schema.Array(Schema.String).annotate({
    description: "All subaddress tags that the message was sent to, the first being `tag`; empty if there are none.",
  }),
  /** Stored size in bytes. */
  size: Schema.Int,
  received_at: Timestamp,
  ...marks,
  ...StoredSummary.fields,
}

export const MessageSummary = Schema.Struct(summary).annotate({ identifier: "MessageSummary" })
export type MessageSummary = typeof MessageSummary.Type

export const Message = Schema.Struct({
  ...summary,
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  /** The text without quotes and signature; null if the message has no text. */
  text_reply: Schema.NullOr(Schema.String),
  /** Up to 100 links: those that are visible in the HTML, or else the URLs in the text. */
  links: Schema.optionalKey(Schema.Array(Link)),
  headers: Schema.Array(Header),
  /** Only for outgoing messages. */
  status: Schema.optionalKey(outbound.status),
  approval: Schema.optionalKey(outbound.approval),
  delivery: Schema.optionalKey(outbound.delivery),
}).annotate({ identifier: "Message" })
export type Message = typeof Message.Type

/** Omitted members stay unchanged; `labels` replaces all labels. */
export const MessagePatch = Schema.Struct({
  seen: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether the message is read." })),
  flagged: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether the message is flagged." })),
  labels: Schema.optionalKey(
    Schema.Array(AnyCaseLabel).check(Schema.isMaxLength(limits.labels)).annotate({
      description: "Replaces all labels of the message. IMAP clients see them as keywords.",
    }),
  ),
}).annotate({ identifier: "MessagePatch" })
export type MessagePatch = typeof MessagePatch.Type

/** Messages that one request changes: by id, or all messages of conversations. */
const named = {
  ids: Schema.optionalKey(
    Schema.Array(MessageId).check(Schema.isMaxLength(200)).annotate({ description: "The ids of the messages." }),
  ),
  threads: Schema.optionalKey(
    Schema.Array(ThreadId)
      .check(Schema.isMaxLength(200))
      .annotate({ description: "The ids of conversations, all messages of which are meant." }),
  ),
}
const someLabels = Schema.optionalKey(
  Schema.Array(AnyCaseLabel)
    .check(Schema.isMaxLength(limits.labels))
    .annotate({ description: "Labels; others stay unchanged." }),
)

/** A change of several messages. Omitted members stay unchanged. */
export const MessagesPatch = Schema.Struct({
  ...named,
  seen: MessagePatch.fields.seen,
  flagged: MessagePatch.fields.flagged,
  add_labels: someLabels,
  remove_labels: someLabels,
}).annotate({ identifier: "MessagesPatch" })
export type MessagesPatch = typeof MessagesPatch.Type

export const MessagesRemoval = Schema.Struct(named).annotate({ identifier: "MessagesRemoval" })

export const MessagesChanged = Schema.Struct({
  changed: Schema.Array(MessageId),
  more: Schema.Boolean,
}).annotate({ identifier: "MessagesChanged" })

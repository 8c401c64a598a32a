/** Schemas of outgoing messages, drafts and approvals (decisions.md "Send", "Drafts", "Approval"). */
import { Schema } from "effect"
import { MessageId } from "../IdSchemas.ts"
import { Line, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"
import * as ContentId from "./ContentId.ts"
import { Address, Attachment, Header } from "./Message.ts"
import * as MessageIds from "./MessageIdField.ts"

/** Maximum number of recipients of a message, including Cc and Bcc. */
export const recipientsAtMost = 50
/** Maximum length of a text or HTML body. */
const bodyAtMost = 1_000_000

const Recipients = Schema.Array(Text.check(Schema.isMaxLength(320))).check(Schema.isMaxLength(recipientsAtMost))

/** A message id in a header field (RFC 5322 section 3.6.4). */
const MessageIdField = Schema.String.check(
  Schema.isPattern(MessageIds.strict, { expected: "a message id with its angle brackets" }),
)

/** An outgoing attachment. Its media type has no parameters and is not a type that contains messages. */
export const OutgoingAttachment = Schema.Struct({
  filename: Line(200),
  content_type: Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,60}\/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,80}$/u, {
      expected: "a media type without parameters",
    }),
  ),
  content_base64: Schema.String,
  content_id: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(ContentId.pattern, { expected: "a content id without angle brackets" }),
    ).annotate({
      description:
        'Content id of an inline image, which the HTML shows with `<img src="cid:…">`. An image that the HTML does not show is an ordinary attachment.',
    }),
  ),
}).annotate({ identifier: "OutgoingAttachment" })
export type OutgoingAttachment = typeof OutgoingAttachment.Type

export const NewMail = Schema.Struct({
  to: Schema.optionalKey(
    Recipients.annotate({ description: "Addresses. May be empty or omitted with `reply_to_message`." }),
  ),
  cc: Schema.optionalKey(Recipients),
  bcc: Schema.optionalKey(Recipients),
  // The subject is one line; folding happens when the header field is written.
  subject: Schema.optionalKey(
    Text.check(
      Schema.isMaxLength(900),
      // oxlint-disable-next-line no-control-regex -- they are what is refused; a class every regex dialect reads
      Schema.isPattern(/^[^\u0000-\u001f\u007f-\u009f]*$/, { expected: "one line without control characters" }),
    ),
  ),
  text: Schema.optionalKey(Text.check(Schema.isMaxLength(bodyAtMost))),
  html: Schema.optionalKey(Text.check(Schema.isMaxLength(bodyAtMost))),
  in_reply_to: Schema.optionalKey(MessageIdField),
  references: Schema.optionalKey(Schema.Array(MessageIdField).check(Schema.isMaxLength(100))),
  reply_to_message: Schema.optionalKey(
    MessageId.annotate({
      description: "The message to reply to; it determines recipients, subject and thread.",
    }),
  ),
  reply_all: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Reply to all recipients, not only to the sender." }),
  ),
  attachments: Schema.optionalKey(Schema.Array(OutgoingAttachment).check(Schema.isMaxLength(50))),
  headers: Schema.optionalKey(
    Schema.Record(Schema.String, Line(900)).annotate({
      description:
        "Additional header fields: `List-Unsubscribe`, `List-Unsubscribe-Post` and names that start with `X-`, except names that relays interpret as commands (`X-SMTPAPI`, `X-MC-…`).",
    }),
  ),
}).annotate({ identifier: "NewMail" })
export type NewMail = typeof NewMail.Type

export const Sent = Schema.Struct({
  id: MessageId,
  message_id: Schema.String,
  status: Schema.Literals(["queued", "awaiting_approval"]),
  recipients: Schema.Array(
    Schema.Struct({ address: Schema.String, status: Schema.Literals(["queued", "awaiting_approval"]) }),
  ),
}).annotate({ identifier: "SentMail" })
export type Sent = typeof Sent.Type

/** SHA-256 in hexadecimal of the bytes that are sent (`GET …/messages/{id}/raw`). */
const ContentSha256 = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/, { expected: "the content_sha256 of GET …/approvals/{id}" }),
).annotate({
  description:
    "The `content_sha256` of the message that was read. If the message has changed, the response is `content_changed` and nothing is sent.",
})

/** Passages that only the text or only the HTML of a message contains. */
export const PartsDifference = Schema.Struct({
  only_in_html: Schema.Array(Schema.String),
  only_in_text: Schema.Array(Schema.String),
}).annotate({ identifier: "PartsDifference" })
export type PartsDifference = typeof PartsDifference.Type

/** A message as the approving person sees it. */
const pending = {
  id: MessageId,
  from: Schema.NullOr(Address),
  reply_to: Schema.Array(Address),
  to: Schema.Array(Address),
  cc: Schema.Array(Address),
  bcc: Schema.Array(Address),
  subject: Schema.String,
  snippet: Schema.String,
  attachments: Schema.Array(Attachment),
  size: Schema.Int,
  requested_at: Timestamp,
  requested_by: Schema.NullOr(Schema.String),
  expires_at: Timestamp,
  html: Schema.NullOr(Schema.String),
  text: Schema.NullOr(Schema.String),
  differences: Schema.NullOr(PartsDifference),
}

/** Maximum length of text and HTML together up to which the list contains them in full. */
export const listedWhole = 16 * 1024

/** A message that awaits approval, as lists show it. It has `content_sha256` only if it is complete. */
export const PendingApproval = Schema.Struct({
  ...pending,
  truncated: Schema.Boolean,
  content_sha256: Schema.NullOr(Schema.String),
}).annotate({ identifier: "PendingApproval" })
export type PendingApproval = typeof PendingApproval.Type

/** A complete message that awaits approval. */
export const WholeApproval = Schema.Struct({
  ...pending,
  headers: Schema.Array(Header),
  content_sha256: Schema.String,
}).annotate({ identifier: "WholeApproval" })
export type WholeApproval = typeof WholeApproval.Type

/** Approves exactly the content that the person has read. */
export const Approving = Schema.Struct({
  content_sha256: ContentSha256.annotateKey({
    messageMissingKey:
      "expected the content_sha256 of GET …/approvals/{id}: an approval names the content that was read",
  }),
})

/** The reason for a rejection, in the words of the person who rejects the message. */
export const Refusal = Schema.Struct({
  reason: Schema.optionalKey(Schema.NullOr(Text.check(Schema.isMaxLength(500)))),
  content_sha256: Schema.optionalKey(ContentSha256),
})

/** A draft as lists show it. */
export const DraftSummary = Schema.Struct({
  id: MessageId,
  to: Schema.Array(Schema.String),
  cc: Schema.Array(Schema.String),
  bcc: Schema.Array(Schema.String),
  subject: Schema.String,
  snippet: Schema.String,
  attachments: Schema.Array(Schema.Struct({ filename: Schema.String, content_type: Schema.String })),
  created_at: Timestamp,
  updated_at: Timestamp,
}).annotate({ identifier: "DraftSummary" })
export type DraftSummary = typeof DraftSummary.Type

const DraftAttachment = Schema.Struct({
  filename: Schema.String,
  content_type: Schema.String,
  content_base64: Schema.String,
  content_id: Schema.optionalKey(Schema.String),
}).annotate({ identifier: "DraftAttachment" })

const Shown = Schema.optionalKey(Schema.Array(Schema.String))
const ShownText = Schema.optionalKey(Schema.String)

/** A complete draft. Its id becomes the id of the sent message. */
export const Draft = Schema.Struct({
  id: MessageId,
  to: Shown,
  cc: Shown,
  bcc: Shown,
  subject: ShownText,
  text: ShownText,
  html: ShownText,
  in_reply_to: ShownText,
  references: Shown,
  reply_to_message: Schema.optionalKey(MessageId),
  reply_all: Schema.optionalKey(Schema.Boolean),
  attachments: Schema.optionalKey(Schema.Array(DraftAttachment)),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  created_at: Timestamp,
  updated_at: Timestamp,
}).annotate({ identifier: "Draft" })
export type Draft = typeof Draft.Type

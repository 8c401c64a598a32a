/** Operations on received messages: list, search, wait, read, download, flag and remove. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Confidential, onIdentity, Tagged } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { MessageId, ThreadId } from "../IdSchemas.ts"
import { Tool } from "../mcp/Tool.ts"
import { Limit, Offset } from "../Paging.ts"
import { conditional } from "../Precondition.ts"
import {
  InvalidCursor,
  InvalidRequest,
  NotFound,
  PreconditionFailed,
  RangeNotSatisfiable,
  Unavailable,
} from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { AnyCaseLabel } from "./Flags.ts"
import {
  AttachmentText,
  attachmentTextAtMost,
  Message,
  MessagePatch,
  MessagesChanged,
  MessagesPatch,
  MessagesRemoval,
  MessageSummary,
} from "./Message.ts"
import { About } from "../account/EndpointScope.ts"

const Wait = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })).annotate({
  description: "Seconds to wait for a new message.",
})

const params = { handle: HandleParam }
const one = { handle: HandleParam, id: MessageId.annotate({ description: "The id of the resource." }) }

const attached = {
  ...one,
  index: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 })).annotate({
    description: "The attachment's `index`.",
  }),
}

/** Filters of the list and of `wait`. */
const filters = {
  query: Schema.optionalKey(
    Text.check(Schema.isMaxLength(500)).annotate({
      description:
        'Words, all of which must match; `"a phrase"`; `from:`, `to:`, `subject:`, `tag:`, `label:`; `has:attachment`; `before:`, `after:` with a day or time; `is:unread`, `is:read`, `is:flagged`, `is:answered`; `-` before a term excludes it. Words are searched in sender, recipients, subject, attachment names and bodies, ignoring case and accents.',
    }),
  ),
  tag: Schema.optionalKey(
    Text.check(Schema.isMaxLength(200)).annotate({
      description: "Only messages to this subaddress tag.",
    }),
  ),
  thread_id: Schema.optionalKey(ThreadId.annotate({ description: "Only messages of this thread." })),
  from: Schema.optionalKey(
    Text.check(Schema.isMinLength(1), Schema.isMaxLength(320)).annotate({
      description: "Only messages from this address or `@domain`.",
    }),
  ),
}

const page = Schema.Struct({ messages: Schema.Array(MessageSummary), next_cursor: Schema.NullOr(Schema.String) })

export class MessageApi extends HttpApiGroup.make("messages")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/messages", {
      params,
      query: {
        limit: Limit,
        offset: Offset,
        cursor: Schema.optionalKey(
          Text.check(Schema.isMaxLength(500)).annotate({
            description: "`next_cursor` of the previous page, unchanged.",
          }),
        ),
        ...filters,
        direction: Schema.optionalKey(
          Schema.Literals(["inbound", "outbound"]).annotate({
            description: "Only received or only sent messages.",
          }),
        ),
        seen: Schema.optionalKey(
          Schema.Boolean.annotate({ description: "Only messages that are read, or (false) unread." }),
        ),
        flagged: Schema.optionalKey(
          Schema.Boolean.annotate({ description: "Only messages that are flagged, or (false) not flagged." }),
        ),
        label: Schema.optionalKey(AnyCaseLabel.annotate({ description: "Only messages with this label." })),
        wait: Schema.optionalKey(Wait),
        after: Schema.optionalKey(MessageId.annotate({ description: "Only messages newer than this one." })),
      },
      success: page,
      error: [InvalidRequest, NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List, search or wait for messages, newest first")
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_email_list",
        effect: "read",
        untrusted: ["messages"],
        columns: ["id", "received_at", "direction", "from", "to", "subject", "seen"],
        advice:
          "Read a message with `svc_email_get`; for conversations use `svc_thread_list`, for future messages `svc_email_wait`.",
      }),
    HttpApiEndpoint.get("wait", "/api/identities/:handle/messages/wait", {
      params,
      query: {
        seconds: Schema.optionalKey(
          Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 })).annotate({
            description: "Maximum time to wait.",
            default: 30,
          }),
        ),
        after: Schema.optionalKey(
          MessageId.annotate({
            description:
              "The id of the newest message you know. Newer messages are returned immediately. Without it, only messages that arrive from now on count.",
          }),
        ),
        ...filters,
      },
      success: Schema.Struct({
        messages: Schema.Array(MessageSummary),
        /** The value for `after` in the next call; null while the Mailbox is empty. */
        after: Schema.NullOr(MessageId),
      }),
      error: [InvalidRequest, NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Wait for a new message")
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_email_wait",
        effect: "read",
        untrusted: ["messages"],
        columns: ["id", "received_at", "from", "subject"],
        advice: "Returns none after the timeout: call again with the returned `after`, so that no message is missed.",
      }),
    HttpApiEndpoint.get("read", "/api/identities/:handle/messages/:id", {
      params: one,
      success: Message,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read one message with its body and headers")
      .annotate(Confidential, true)
      .annotate(Tagged, true)
      .annotate(Tool, {
        name: "svc_email_get",
        effect: "read",
        untrusted: [
          "from",
          "reply_to",
          "subject",
          "snippet",
          "attachments",
          "text_reply",
          "text",
          "html",
          "links",
          "headers",
        ],
        advice:
          "`text_reply` is the author's own text without quotes. If `truncated`, `left_out` says how to read on. Read attachments with `svc_attachment_get`, mark as read with `svc_email_update`.",
      }),
    HttpApiEndpoint.patch("patch", "/api/identities/:handle/messages/:id", {
      params: one,
      headers: conditional,
      payload: [MessagePatch, MessagePatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: MessageSummary,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Change a message's flags: read, flagged, labels")
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_email_update",
        effect: "idempotent_write",
        untrusted: ["from", "reply_to", "subject", "snippet", "attachments"],
      }),
    HttpApiEndpoint.patch("patchMany", "/api/identities/:handle/messages", {
      params,
      headers: conditional,
      payload: MessagesPatch,
      success: MessagesChanged,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Change the flags of several messages or conversations together"),
    HttpApiEndpoint.post("removeMany", "/api/identities/:handle/messages/remove", {
      params,
      payload: MessagesRemoval,
      success: MessagesChanged,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Remove several messages or conversations together"),
    HttpApiEndpoint.delete("remove", "/api/identities/:handle/messages/:id", {
      params: one,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Remove one message"),
    HttpApiEndpoint.get("raw", "/api/identities/:handle/messages/:id/raw", {
      params: one,
      success: HttpApiSchema.StreamUint8Array({ contentType: "message/rfc822" }),
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the raw source of a message"),
    HttpApiEndpoint.get("attachment", "/api/identities/:handle/messages/:id/attachments/:index", {
      params: attached,
      headers: {
        range: Schema.optionalKey(
          Schema.String.annotate({ description: "One range of bytes, as in `bytes=0-1023` (RFC 9110 section 14)." }),
        ),
        "if-range": Schema.optionalKey(
          Schema.String.annotate({
            description: "The entity tag that `Range` applies to; with another tag the response is complete.",
          }),
        ),
      },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      error: [NotFound, RangeNotSatisfiable, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Download one attachment, or a range of its bytes"),
  )
  .add(
    HttpApiEndpoint.get("attachmentText", "/api/identities/:handle/messages/:id/attachments/:index/text", {
      params: attached,
      query: {
        offset: Schema.optionalKey(
          Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 })).annotate({
            description: "The offset to start at: `next_offset` of the previous call.",
            default: 0,
          }),
        ),
        limit: Schema.optionalKey(
          Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: attachmentTextAtMost })).annotate({
            description: "Maximum bytes of text.",
            default: attachmentTextAtMost,
          }),
        ),
      },
      success: AttachmentText,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read one attachment as text")
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_attachment_get",
        effect: "read",
        untrusted: ["filename", "text"],
        advice: "`text` is null for images, PDF and the like. Pass `next_offset` as `offset` to read on.",
      }),
  )
  .annotateEndpoints(About, "mail")
  .annotate(OpenApi.Description, "The Mailbox of an Identity.") {}

/** Reading a Mailbox: newest first, one message whole or as it came, its attachments; removing one. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization, Tagged } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { Tool } from "../mcp/Tool.ts"
import { Limit, Offset } from "../Paging.ts"
import { NotFound, Unavailable } from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { Message, MessageSummary } from "./Message.ts"

export const MessageId = Schema.String.check(
  Schema.isPattern(/^msg_[0-9a-hjkmnp-tv-z]{26}$/, { expected: "a message id (msg_…)" }),
)

export const ThreadId = Schema.String.check(
  Schema.isPattern(/^thr_[0-9a-hjkmnp-tv-z]{26}$/, { expected: "a thread id (thr_…)" }),
)

/** Seconds to wait for a message when none is there yet. */
const Wait = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))

const params = { handle: HandleParam }
const one = { handle: HandleParam, id: MessageId }

export class MessageApi extends HttpApiGroup.make("messages")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/messages", {
      params,
      query: {
        limit: Limit,
        offset: Offset,
        query: Schema.optionalKey(Text.check(Schema.isMaxLength(500))),
        direction: Schema.optionalKey(Schema.Literals(["inbound", "outbound"])),
        tag: Schema.optionalKey(Text.check(Schema.isMaxLength(200))),
        thread_id: Schema.optionalKey(ThreadId),
        wait: Schema.optionalKey(Wait),
        after: Schema.optionalKey(MessageId),
      },
      success: Schema.Struct({ messages: Schema.Array(MessageSummary) }),
      error: [NotFound, Unavailable],
    }).annotate(Tool, {
      name: "svc_email_list",
      effect: "read",
      without: ["direction", "tag", "thread_id", "wait", "after"],
    }),
    HttpApiEndpoint.get("read", "/api/identities/:handle/messages/:id", {
      params: one,
      success: Message,
      error: [NotFound, Unavailable],
    })
      .annotate(Tagged, true)
      .annotate(Tool, { name: "svc_email_get", effect: "read" }),
    HttpApiEndpoint.delete("remove", "/api/identities/:handle/messages/:id", {
      params: one,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Unavailable],
    }),
    HttpApiEndpoint.get("raw", "/api/identities/:handle/messages/:id/raw", {
      params: one,
      success: HttpApiSchema.StreamUint8Array({ contentType: "message/rfc822" }),
      error: [NotFound, Unavailable],
    }),
    HttpApiEndpoint.get("attachment", "/api/identities/:handle/messages/:id/attachments/:index", {
      params: { ...one, index: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 })) },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/octet-stream" }),
      error: [NotFound, Unavailable],
    }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "any") {}

/** Reading a Mailbox: newest first, and one message whole. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Access, Authorization } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { Limit, Offset } from "../Paging.ts"
import { NotFound, Unavailable } from "../problems/Problem.ts"
import { Message, MessageSummary } from "./Message.ts"

export const MessageId = Schema.String.check(
  Schema.isPattern(/^msg_[0-9a-hjkmnp-tv-z]{26}$/, { expected: "a message id (msg_…)" }),
)

export class MessageApi extends HttpApiGroup.make("messages")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/messages", {
      params: { handle: HandleParam },
      query: { limit: Limit, offset: Offset },
      success: Schema.Struct({ messages: Schema.Array(MessageSummary) }),
      error: [NotFound, Unavailable],
    }),
    HttpApiEndpoint.get("read", "/api/identities/:handle/messages/:id", {
      params: { handle: HandleParam, id: MessageId },
      success: Message,
      error: [NotFound, Unavailable],
    }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "any") {}

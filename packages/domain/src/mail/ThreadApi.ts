/** Operations on conversations: the list, newest message first, and the messages of a conversation, oldest first. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Confidential, onIdentity, Tagged } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { ThreadId } from "../IdSchemas.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, paging } from "../Paging.ts"
import { InvalidCursor, NotFound, Unavailable } from "../problems/Problem.ts"
import { Thread, ThreadMessage } from "./Thread.ts"
import { About } from "../account/EndpointScope.ts"

export class ThreadApi extends HttpApiGroup.make("threads")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/threads", {
      params: { handle: HandleParam },
      query: {
        archived: Schema.optionalKey(
          Schema.Boolean.annotate({
            description:
              "Only conversations that are archived, or (false) not: all their messages have the label `archived`.",
          }),
        ),
        ...paging,
      },
      success: pageOf("threads", Thread),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List conversations, newest activity first")
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_thread_list",
        effect: "read",
        untrusted: ["threads"],
        columns: ["id", "last_message_at", "participants", "subject", "messages", "unread"],
        advice: "Read one with `svc_thread_get`; search messages with `svc_email_list`.",
      }),
    HttpApiEndpoint.get("read", "/api/identities/:handle/threads/:id", {
      params: { handle: HandleParam, id: ThreadId.annotate({ description: "The thread's id (`thr_…`)." }) },
      query: paging,
      success: Schema.Struct({
        thread: Thread,
        messages: Schema.Array(ThreadMessage),
        next_cursor: Schema.NullOr(Schema.String),
      }),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read one conversation, oldest message first")
      .annotate(Confidential, true)
      .annotate(Tagged, true)
      .annotate(Tool, {
        name: "svc_thread_get",
        effect: "read",
        untrusted: ["thread", "messages"],
        columns: ["id", "received_at", "from", "subject", "text_reply"],
        advice: "Messages have only their `text_reply`, cut as `left_out` says; read whole ones with `svc_email_get`.",
      }),
  )
  .annotateEndpoints(About, "mail")
  .annotate(OpenApi.Description, "Conversations in the Mailbox of an Identity.") {}

import { Api } from "@svc/domain/Api"
import { Subject } from "@svc/domain/account/Authorization"
import { fromPublic } from "@svc/domain/Ids"
import { Message } from "@svc/domain/mail/Message"
import { NotFound } from "@svc/domain/problems/Problem"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import * as Serving from "../http/Serving.ts"
import * as Asking from "../account/Asking.ts"
import { unchanged } from "../EntityTags.ts"
import * as Waiting from "./Waiting.ts"

/** `filename*` in UTF-8 (RFC 6266, RFC 8187); no name that a browser would read as a path or a header. */
const disposition = (filename: string | null) =>
  filename === null
    ? "attachment"
    : `attachment; filename*=UTF-8''${encodeURIComponent(filename.replace(/[\\/\p{Cc}]/gu, "_")).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)}`

const sameMessage = unchanged(Message)

export const layer = Serving.group(
  Api,
  "messages",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* Asking.ofIdentity
    const messages = yield* MessageQueries
    const attachments = yield* AttachmentReader
    const waiting = yield* Waiting.make

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const subject = yield* Subject
        const { wait, ...filter } = query
        return {
          messages: yield* wait === undefined ? messages.list(subject.id, filter) : waiting(subject.id, filter, wait),
        }
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* Subject
        return yield* messages.read(id, params.id)
      }),
      remove: Effect.fnUntraced(function* ({ params, headers }) {
        const subject = yield* Subject
        const { orgId } = subject
        yield* sameMessage(headers["if-match"], messages.read(subject.id, params.id))
        const message_id = fromPublic("msg_", params.id)
        if (message_id === undefined) return yield* new NotFound({ detail: "There is no such message." })
        yield* askIdentity(subject, (actor, by) => actor.RemoveMessage({ org_id: orgId, message_id }, by))
      }),
      raw: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* Subject
        return HttpServerResponse.uint8Array(yield* messages.raw(id, params.id), { contentType: "message/rfc822" })
      }),
      attachment: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* Subject
        const found = attachments.read(yield* messages.raw(id, params.id), params.index)
        if (found === undefined) return yield* new NotFound({ detail: "The message has no such attachment." })
        return HttpServerResponse.uint8Array(found.content, {
          contentType: found.content_type,
          headers: {
            "content-disposition": disposition(found.filename),
            // Whatever someone sent is never a page of ours.
            "content-security-policy": "sandbox; default-src 'none'",
          },
        })
      }),
    })
  }),
)

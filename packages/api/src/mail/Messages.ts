import { Api } from "@svc/domain/Api"
import { fromPublic } from "@svc/domain/Ids"
import { NotFound } from "@svc/domain/problems/Problem"
import { ask } from "@svc/cluster/actor/Ask"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as OwnIdentity from "../identity/OwnIdentity.ts"
import * as Waiting from "./Waiting.ts"

/** `filename*` in UTF-8 (RFC 6266, RFC 8187); no name that a browser would read as a path or a header. */
const disposition = (filename: string | null) =>
  filename === null
    ? "attachment"
    : `attachment; filename*=UTF-8''${encodeURIComponent(filename.replace(/[\\/\p{Cc}]/gu, "_")).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)}`

export const layer = HttpApiBuilder.group(
  Api,
  "messages",
  Effect.fn(function* (handlers) {
    const own = yield* OwnIdentity.make
    const messages = yield* MessageQueries
    const attachments = yield* AttachmentReader
    const waiting = yield* Waiting.make

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ params, query }) {
        const { id } = yield* own(params.handle)
        const { wait, ...filter } = query
        return {
          messages: yield* wait === undefined ? messages.list(id, filter) : waiting(id, filter, wait),
        }
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* own(params.handle)
        return yield* messages.read(id, params.id)
      }),
      remove: Effect.fnUntraced(function* ({ params }) {
        const { org_id, actor } = yield* own(params.handle)
        const message_id = fromPublic("msg_", params.id)
        if (message_id === undefined) return yield* new NotFound({ detail: "There is no such message." })
        yield* ask(actor.RemoveMessage({ org_id, message_id }))
      }),
      raw: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* own(params.handle)
        return HttpServerResponse.uint8Array(yield* messages.raw(id, params.id), { contentType: "message/rfc822" })
      }),
      attachment: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* own(params.handle)
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

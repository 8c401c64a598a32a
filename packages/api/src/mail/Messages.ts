import { Api } from "@svc/domain/Api"
import { Subject } from "@svc/domain/account/Authorization"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { limits } from "@svc/domain/mail/Flags"
import { attachmentTextAtMost, Message } from "@svc/domain/mail/Message"
import { NotFound, PreconditionFailed, RangeNotSatisfiable } from "@svc/domain/problems/Problem"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { type MessagePage, MessageQueries, type TextPage } from "@svc/cluster/mail/MessageQueries"
import { Effect, Semaphore } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import { unchanged, untagged } from "../EntityTags.ts"
import { RequestContext, unlessMade } from "../RequestContext.ts"
import * as Download from "./Download.ts"
import { encode, slice } from "./TextSlice.ts"
import * as MessageWait from "./MessageWait.ts"
import { ThreadQueries } from "@svc/cluster/mail/ThreadQueries"

const sameMessage = unchanged(Message)

/** The number of messages parsed for attachments at the same time; each is held in memory as a whole. */
const openedAtOnce = 4

/**
 * Encodes a page without the schema, which halves the cost. Times are converted to text first, because a single value with
 * `toJSON` disables the fast path of `JSON.stringify`, which halves it again.
 */
const answerOf = ({ messages, next_cursor }: TextPage) =>
  HttpServerResponse.text(`{"messages":[${messages.join(",")}],"next_cursor":${JSON.stringify(next_cursor)}}`, json)
const json = { contentType: "application/json" }

const textPage = ({ messages, next_cursor }: MessagePage): TextPage => ({
  messages: messages.map((message) => JSON.stringify({ ...message, received_at: message.received_at.toISOString() })),
  next_cursor,
})

export const layer = RequestServices.group(
  Api,
  "messages",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const messages = yield* MessageQueries
    const attachments = yield* AttachmentReader
    const waiting = yield* MessageWait.make
    const opening = yield* Semaphore.make(openedAtOnce)
    /** Reads a stored message; only a few are in memory at the same time. */
    const opened = <A, E>(id: IdentityId, message: string, read: (raw: Uint8Array) => Effect.Effect<A, E>) =>
      opening.withPermits(1)(Effect.flatMap(messages.raw(id, message), read))
    const noAttachment = () => new NotFound({ detail: "The message has no such attachment." })
    const publicOf = (id: string) => toPublic("msg_", id)
    const noMessage = () => new NotFound({ detail: "The message does not exist." })

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const subject = yield* Subject
        const { wait, ...filter } = query
        return answerOf(
          wait === undefined
            ? yield* messages.listText(subject.id, filter)
            : textPage((yield* waiting(subject, filter, wait)).page),
        )
      }),
      wait: Effect.fnUntraced(function* ({ query }) {
        const { seconds = 30, ...filter } = query
        const { page, after = null } = yield* waiting(
          yield* Subject,
          { ...filter, direction: "inbound", limit: 50, offset: 0 },
          seconds,
        ).pipe(Effect.catchTag("invalid_cursor", Effect.die))
        return { messages: page.messages, after }
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* Subject
        return (yield* messages.read(id, params.id)).message
      }),
      patch: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const subject = yield* Subject
        const message_id = fromPublic("msg_", params.id)
        if (message_id === undefined) return yield* noMessage()
        // Repeating the change could revert a later one.
        if ((yield* RequestContext).resumed) return yield* messages.summary(subject.id, params.id)
        const condition = headers["if-match"]
        // The compared version is the changed one: the message's modification sequence reveals a change in between.
        let unchanged_since: number | undefined
        yield* sameMessage(
          condition,
          Effect.map(messages.read(subject.id, params.id), ({ message, modseq }) => {
            unchanged_since = modseq
            return message
          }),
        )
        const { messages: marked, modified } = yield* askIdentity(subject, (actor, by) =>
          actor.ChangeFlags(
            {
              org_id: subject.orgId,
              message_ids: [message_id],
              change: payload,
              ...(unchanged_since === undefined ? {} : { unchanged_since }),
            },
            by,
          ),
        )
        if (modified.length > 0) {
          return yield* new PreconditionFailed({ detail: "The flags or labels of the message have changed meanwhile." })
        }
        if (marked.length === 0) return yield* noMessage()
        return yield* messages.summary(subject.id, params.id)
      }),
      patchMany: Effect.fnUntraced(function* ({ payload, headers }) {
        yield* untagged(headers["if-match"])
        const subject = yield* Subject
        const { ids = [], threads = [], ...change } = payload
        // Messages that the change would not alter are left out, unless an interrupted attempt has altered them.
        const pending = (yield* RequestContext).resumed ? {} : change
        const message_ids = yield* messages.idsOf(subject.id, { ids, threads }, pending, limits.messages)
        if (message_ids.length === 0) return { changed: [], more: false }
        yield* unlessMade(
          askIdentity(subject, (actor, by) => actor.ChangeFlags({ org_id: subject.orgId, message_ids, change }, by)),
        )
        return { changed: message_ids.map(publicOf), more: message_ids.length === limits.messages }
      }),
      removeMany: Effect.fnUntraced(function* ({ payload }) {
        const subject = yield* Subject
        const message_ids = yield* messages.idsOf(subject.id, payload, {}, limits.messages)
        if (message_ids.length === 0) return { changed: [], more: false }
        const { removed } = yield* askIdentity(subject, (actor, by) =>
          actor.RemoveMessages({ org_id: subject.orgId, message_ids }, by),
        )
        return { changed: removed.map(publicOf), more: message_ids.length === limits.messages }
      }),
      remove: Effect.fnUntraced(function* ({ params, headers }) {
        const subject = yield* Subject
        const { orgId } = subject
        yield* sameMessage(
          headers["if-match"],
          Effect.map(messages.read(subject.id, params.id), ({ message }) => message),
        )
        const message_id = fromPublic("msg_", params.id)
        if (message_id === undefined) return yield* noMessage()
        yield* askIdentity(subject, (actor, by) => actor.RemoveMessage({ org_id: orgId, message_id }, by))
      }),
      raw: Effect.fnUntraced(function* ({ params }) {
        const { id } = yield* Subject
        return HttpServerResponse.uint8Array(yield* messages.raw(id, params.id), {
          contentType: "message/rfc822",
          headers: Download.harmless(`${params.id}.eml`),
        })
      }),
      attachmentText: Effect.fnUntraced(function* ({ params, query: { offset = 0, limit = attachmentTextAtMost } }) {
        const { id } = yield* Subject
        const found = yield* opened(id, params.id, (raw) => attachments.text(raw, params.index))
        if (found === undefined) return yield* noAttachment()
        const { text, whole, ...about } = found
        const bytes = encode(text ?? "")
        const cut = slice(bytes, offset, limit)
        const next_offset = cut.end < bytes.length ? cut.end : null
        return {
          ...about,
          index: params.index,
          text: text === null ? null : cut.text,
          offset,
          next_offset,
          truncated: text !== null && (next_offset !== null || !whole),
        }
      }),
      attachment: Effect.fnUntraced(function* ({ params, headers }) {
        const { id } = yield* Subject
        const found = yield* opened(id, params.id, (raw) => attachments.read(raw, params.index))
        if (found === undefined) return yield* noAttachment()
        const etag = `"${params.id}.${params.index}"`
        const ifRange = headers["if-range"]
        // This service sends no Last-Modified validator, so a date in `If-Range` cannot match (RFC 9110 section 13.1.5).
        const range =
          ifRange === undefined || ifRange.trim() === etag ? Download.rangeOf(headers.range, found.size) : undefined
        if (range === "none") {
          const exchange = yield* RequestContext
          exchange.headers["content-range"] = `bytes */${found.size}`
          return yield* new RangeNotSatisfiable({ detail: `The attachment has ${found.size} bytes.` })
        }
        const { start, end } = range ?? { start: 0, end: found.size }
        const { method } = yield* HttpServerRequest.HttpServerRequest
        const answer = {
          status: range === undefined ? 200 : 206,
          headers: {
            // A response without a body would otherwise lose its content type.
            "content-type": Download.safeType(found.content_type),
            etag,
            "accept-ranges": "bytes",
            "content-length": String(end - start),
            ...(range === undefined ? {} : { "content-range": `bytes ${start}-${end - 1}/${found.size}` }),
            ...Download.harmless(found.filename),
          },
        }
        return method === "HEAD" || start === end
          ? HttpServerResponse.empty(answer)
          : HttpServerResponse.stream(found.content(start, end), {
              ...answer,
              contentType: answer.headers["content-type"],
            })
      }),
    })
  }),
)

export const threads = RequestServices.group(
  Api,
  "threads",
  Effect.fn(function* (handlers) {
    const threads = yield* ThreadQueries

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* threads.list((yield* Subject).id, query)
        return { threads: entries, next_cursor }
      }),
      read: Effect.fnUntraced(function* ({ params, query }) {
        return yield* threads.read((yield* Subject).id, params.id, query)
      }),
    })
  }),
)

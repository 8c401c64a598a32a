/**
 * A Mailbox as callers read it: newest first, and one message whole. The order is that of UIDs, which commits give out:
 * ids are minted before, so one could commit behind a place that a reader has passed.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { Header, type Message, type MessageSummary, StoredSummary } from "@svc/domain/mail/Message"
import { InvalidCursor, NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Schema } from "effect"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../store/Database.ts"
import { inSlices } from "./MessageContent.ts"
import { outboundOf } from "./sending/SendingQueries.ts"

const SummaryRow = Schema.Struct({
  id: Schema.String,
  uid: Schema.Int,
  direction: Schema.Literals(["inbound", "outbound"]),
  thread_id: Schema.String,
  tag: Schema.NullOr(Schema.String),
  message_id: Schema.NullOr(Schema.String),
  size: Schema.Int,
  summary: StoredSummary,
  received_at: Schema.Date,
})
const decodeSummaries = Schema.decodeUnknownEffect(Schema.Array(SummaryRow))
const decodeHeaders = Schema.decodeUnknownEffect(Schema.Array(Header))

const summaryView = (row: typeof SummaryRow.Type): MessageSummary => ({
  ...row.summary,
  id: toPublic("msg_", row.id),
  direction: row.direction,
  thread_id: toPublic("thr_", row.thread_id),
  message_id: row.message_id,
  tag: row.tag,
  size: row.size,
  received_at: row.received_at,
})

export interface MessageFilter {
  readonly limit: number
  readonly offset: number
  readonly query?: string
  readonly direction?: "inbound" | "outbound"
  readonly tag?: string
  readonly thread_id?: string
  /** Only messages newer than this one. */
  readonly after?: string
  /** `next_cursor` of the page before. */
  readonly cursor?: string
}

export interface MessagePage {
  readonly messages: ReadonlyArray<MessageSummary>
  readonly next_cursor: string | null
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const columns = sql`message.id, uid, direction, thread_id, tag, message.message_id, size, summary, received_at`
  const missing = Effect.fail(new NotFound({ detail: "There is no such message." }))
  /** Substrings of sender, recipients, subject and bodies, whatever the case. */
  const matching = (query: string) =>
    sql`exists (select from message_content c where c.message_id = message.id and strpos(c.search_text, ${query.toLowerCase()}) > 0)`

  const cursors = (identityId: IdentityId) => `messages/${identityId}`
  const position = (identityId: IdentityId, cursor: string | undefined) => {
    if (cursor === undefined) return Effect.succeed(undefined)
    const uid = sealing.unstamp(cursors(identityId), cursor)
    return uid === undefined
      ? Effect.fail(new InvalidCursor({ detail: "The cursor was not issued by this service." }))
      : Effect.succeed(uid)
  }

  /** Where a message stands, or stood. Of one that nobody remembers: before all that may have come after it. */
  const placeOf = (identityId: IdentityId, id: string | undefined) => sql`coalesce(
    (select uid from message where id = ${id ?? null}::uuid and identity_id = ${identityId}),
    (select uid from removed_message where id = ${id ?? null}::uuid and identity_id = ${identityId}),
    (select min(uid) - 1 from message where id > ${id ?? null}::uuid and identity_id = ${identityId}))`

  return {
    /** Newest first. An id that was not given here matches nothing. */
    list: Effect.fn("MessageQueries.list")(function* (identityId: IdentityId, filter: MessageFilter) {
      const before = yield* position(identityId, filter.cursor)
      const thread = filter.thread_id === undefined ? undefined : fromPublic("thr_", filter.thread_id)
      const after = filter.after === undefined ? undefined : fromPublic("msg_", filter.after)
      const rows = yield* sql`
        select ${columns} from message where identity_id = ${identityId}
          ${before === undefined ? sql`` : sql`and uid < ${before}::int`}
          ${filter.direction === undefined ? sql`` : sql`and direction = ${filter.direction}`}
          ${filter.tag === undefined ? sql`` : sql`and tag = ${filter.tag.toLowerCase()}`}
          ${filter.thread_id === undefined ? sql`` : sql`and thread_id = ${thread ?? null}::uuid`}
          ${filter.after === undefined ? sql`` : sql`and uid > ${placeOf(identityId, after)}`}
          ${filter.query === undefined || filter.query === "" ? sql`` : sql`and ${matching(filter.query)}`}
        order by uid desc limit ${filter.limit + 1} offset ${filter.offset}`
      const found = yield* Effect.orDie(decodeSummaries(rows))
      const shown = found.slice(0, filter.limit)
      const last = shown.at(-1)
      const page: MessagePage = {
        messages: shown.map(summaryView),
        next_cursor:
          found.length > filter.limit && last !== undefined
            ? sealing.stamp(cursors(identityId), String(last.uid))
            : null,
      }
      return page
    }, orUnavailable),

    /** Oldest first, from behind a UID; `last` is the UID to go on from. */
    oldest: Effect.fn("MessageQueries.oldest")(function* (identityId: IdentityId, after: number, limit: number) {
      const found = yield* Effect.orDie(
        decodeSummaries(
          yield* sql`
          select ${columns} from message where identity_id = ${identityId} and uid > ${after}::int
          order by uid limit ${limit}`,
        ),
      )
      return { messages: found.map(summaryView), last: found.at(-1)?.uid ?? after }
    }, orUnavailable),

    /** The newest message there is, by its public id. */
    newest: (identityId: IdentityId) =>
      orUnavailable(
        Effect.map(
          sql<{ id: string }>`select id from message where identity_id = ${identityId} order by uid desc limit 1`,
          ([row]) => (row === undefined ? undefined : toPublic("msg_", row.id)),
        ),
      ),

    /** The message as it was received, with our trace fields on top (RFC 5322). */
    raw: Effect.fn("MessageQueries.raw")(function* (identityId: IdentityId, id: string) {
      const uuid = fromPublic("msg_", id)
      const [found] =
        uuid === undefined
          ? []
          : yield* sql<{ bytes: number }>`
              select length(c.raw) as bytes from message m join message_content c on c.message_id = m.id
              where m.id = ${uuid} and m.identity_id = ${identityId}`
      if (found === undefined) return yield* missing
      const raw = yield* inSlices(
        found.bytes,
        (from, count) => sql<{ slice: Uint8Array }>`
          select substring(raw from ${from}::int for ${count}::int) as slice from message_content where message_id = ${uuid!}`,
      )
      if (raw === undefined) return yield* missing
      return raw
    }, orUnavailable),

    read: Effect.fn("MessageQueries.read")(function* (identityId: IdentityId, id: string) {
      const uuid = fromPublic("msg_", id)
      if (uuid === undefined) return yield* missing
      const rows = yield* sql<{ text: string | null; html: string | null; headers: unknown }>`
        select ${columns}, c.text, c.html, c.headers from message join message_content c on c.message_id = message.id
        where message.id = ${uuid} and message.identity_id = ${identityId}`
      const [summary] = yield* Effect.orDie(decodeSummaries(rows))
      if (summary === undefined) return yield* missing
      const { text, html, headers } = rows[0]!
      const message: Message = {
        ...summaryView(summary),
        text,
        html,
        headers: yield* Effect.orDie(decodeHeaders(headers)),
        ...(summary.direction === "outbound" ? yield* outboundOf(sql, identityId, uuid) : {}),
      }
      return message
    }, orUnavailable),
  }
})

export class MessageQueries extends Context.Service<MessageQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/MessageQueries",
) {
  static readonly layer = Layer.effect(MessageQueries, make)
}

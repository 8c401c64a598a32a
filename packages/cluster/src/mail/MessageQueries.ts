/**
 * Reads a Mailbox: lists, newest first, and single messages. Lists are ordered by UID, which is assigned at commit. Ids
 * are created before the commit, so a message could appear behind a position that a reader has already passed.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import type { FlagChange } from "@svc/domain/mail/Flags"
import { Header, type Message, type MessagesPatch, type MessageSummary } from "@svc/domain/mail/Message"
import { textReply } from "@svc/domain/mail/TextReply"
import { type InvalidRequest, NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import * as Links from "../html/Links.ts"
import { linksOf } from "../html/PlainText.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../store/Database.ts"
import { inSlices } from "./MessageContent.ts"
import { all, type Conditions, type MessageFilter, of as conditionsOf, placeOf } from "./MessageFilters.ts"
import { columns, type SummaryRow, summaryText, summaryView, textColumns, type TextRow } from "./MessageRows.ts"
import * as MessagePages from "./MessagePages.ts"
import * as MessageSearch from "./MessageSearch.ts"
import { outboundOf } from "./sending/SendingQueries.ts"

export type { MessageFilter } from "./MessageFilters.ts"

const decodeHeaders = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Array(Header)))

export interface MessagePage {
  readonly messages: ReadonlyArray<MessageSummary>
  readonly next_cursor: string | null
}

/** A page whose messages are JSON texts. */
export interface TextPage {
  readonly messages: ReadonlyArray<string>
  readonly next_cursor: string | null
}

/**
 * Whether the filter selects only the newest messages or those before a cursor, so that the cost is bounded by the page
 * size.
 */
const isPlain = (filter: MessageFilter) =>
  Object.entries(filter).every(
    ([name, value]) =>
      value === undefined || name === "limit" || name === "cursor" || (name === "offset" && value === 0),
  )

/** Bodies up to this size (bytes) are read in one response, larger ones in slices. */
const inOneAnswer = 4 * 1024 * 1024

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const selected = columns(sql)
  const selectedText = textColumns(sql)
  const find = MessageSearch.make(sql)
  const missing = Effect.fail(new NotFound({ detail: "The message does not exist." }))

  const position = (list: string, cursor: string | undefined) => {
    if (cursor === undefined) return Effect.succeed(undefined)
    const uid = sealing.unstamp(list, cursor)
    return uid === undefined ? Effect.fail(Cursors.invalidCursor()) : Effect.succeed(Number(uid))
  }

  /**
   * Lists messages. The limit is part of the statement text: with a parameter, the database would plan each call anew.
   */
  const listed = <Row extends object>(
    shown: Statement.Fragment,
    identityId: IdentityId,
    { onMessage }: Conditions,
    before: number | undefined,
    after: string | undefined,
    atMost: number,
  ) =>
    sql<Row>`
      select ${shown} from message m where m.identity_id = ${identityId} and not m.is_draft
        ${before === undefined ? sql`` : sql`and m.uid < ${before}::int`}
        ${after === undefined ? sql`` : sql`and m.uid > ${placeOf(sql, identityId, after)}`} ${all(sql, onMessage)}
      order by m.uid desc limit ${sql.literal(String(atMost))}`

  const unnarrowed: Conditions = { onMessage: [], onContent: [], texts: [] }
  const newest = yield* MessagePages.make(sql, ({ identityId, before, atMost }) =>
    listed<TextRow>(selectedText, identityId, unnarrowed, before, undefined, atMost),
  )

  /**
   * Returns the UID range of a search, exclusive at both ends. `low` is null if `after` is unknown and nothing is
   * newer.
   */
  const bounds = (identityId: IdentityId, before: number | undefined, after: string | undefined) =>
    Effect.map(
      sql<{ low: number | null; high: number }>`
        select ${after === undefined ? sql`0` : placeOf(sql, identityId, after)} as low,
               coalesce(${before ?? null}::int, (select uid_next from mailbox where identity_id = ${identityId}), 1) as high`,
      ([row]) => row!,
    )

  const searched = Effect.fnUntraced(function* (
    identityId: IdentityId,
    conditions: Conditions,
    before: number | undefined,
    after: string | undefined,
    atMost: number,
  ): Effect.fn.Return<MessageSearch.Found, SqlError.SqlError> {
    const { low, high } = yield* bounds(identityId, before, after)
    return low === null ? { rows: [], lookedTo: undefined } : yield* find(identityId, conditions, { low, high }, atMost)
  })

  /**
   * Decodes the cursor of a list. Returns the position, the number of rows to read, and a function that turns rows into
   * a page.
   */
  const pageOf = Effect.fnUntraced(function* (identityId: IdentityId, filter: MessageFilter) {
    const list = Cursors.filteredList(`messages/${identityId}`, filter)
    const before = yield* position(list, filter.cursor)
    const atMost = filter.offset + filter.limit + 1
    const page = <Row extends { readonly uid: number }, A>(
      rows: ReadonlyArray<Row>,
      view: (row: Row) => A,
      lookedTo: number | undefined,
    ) => {
      const shown = rows.slice(filter.offset, filter.offset + filter.limit)
      const last = rows.length === atMost ? shown.at(-1)!.uid : lookedTo
      return {
        messages: shown.map(view),
        next_cursor: last === undefined ? null : sealing.stamp(list, String(last)),
      }
    }
    return { before, atMost, page }
  })

  type PageOf = Effect.Success<ReturnType<typeof pageOf>>

  const body = Effect.fnUntraced(function* (
    id: string,
    column: "text" | "html" | "headers",
    bytes: number | null,
  ): Effect.fn.Return<string | null | undefined, SqlError.SqlError> {
    if (bytes === null) return null
    const read = sql.literal(column === "headers" ? "headers::text" : column)
    const found = yield* inSlices(
      bytes,
      (from, count) => sql<{ slice: Uint8Array }>`
        select substring(convert_to(${read}, 'UTF8') from ${from}::int for ${count}::int) as slice
        from message_content where message_id = ${id}`,
    )
    return found === undefined ? undefined : Buffer.from(found.buffer, found.byteOffset, found.byteLength).toString()
  })

  interface WholeRow extends SummaryRow {
    readonly modseq: number
    readonly text: string | null
    readonly html: string | null
    readonly headers: string | null
    readonly text_bytes: number | null
    readonly html_bytes: number | null
    readonly header_bytes: number
    readonly is_whole: boolean
  }

  const narrowed = Effect.fn("MessageQueries.listText")(function* (
    identityId: IdentityId,
    filter: MessageFilter,
    { before, atMost, page }: PageOf,
  ): Effect.fn.Return<TextPage, SqlError.SqlError | InvalidRequest> {
    const conditions = yield* conditionsOf(sql, filter)
    if (conditions.onContent.length === 0) {
      const rows = yield* listed<TextRow>(selectedText, identityId, conditions, before, filter.after, atMost)
      return page(rows, summaryText, undefined)
    }
    const { rows, lookedTo } = yield* searched(identityId, conditions, before, filter.after, atMost)
    return page(rows, (row) => JSON.stringify(summaryView(row)), lookedTo)
  }, orUnavailable)

  return {
    /** Returns at most `atMost` of the messages and of the conversations' messages, without those that the change leaves as they are. */
    idsOf: (
      identityId: IdentityId,
      { ids = [], threads = [] }: Pick<MessagesPatch, "ids" | "threads">,
      { seen, flagged, add_labels = [], remove_labels = [] }: FlagChange,
      atMost: number,
    ) => {
      const uuids = (prefix: "msg_" | "thr_", all: ReadonlyArray<string>) =>
        all.flatMap((id) => fromPublic(prefix, id) ?? [])
      const isChange = seen !== undefined || flagged !== undefined || add_labels.length + remove_labels.length > 0
      return orUnavailable(
        Effect.map(
          sql<{ id: string }>`
            select m.id from message m
            where m.identity_id = ${identityId} and not m.is_draft
              and (m.id = any(${uuids("msg_", ids)}::uuid[]) or m.thread_id = any(${uuids("thr_", threads)}::uuid[]))
              and (${!isChange}::boolean or m.seen <> ${seen ?? null}::boolean or m.flagged <> ${flagged ?? null}::boolean
                or not m.labels @> ${add_labels}::text[] or m.labels && ${remove_labels}::text[])
            order by m.uid desc limit ${sql.literal(String(atMost))}`,
          (rows) => rows.map(({ id }) => id),
        ),
      )
    },

    /** Lists messages, newest first. An unknown id matches nothing. */
    list: Effect.fnUntraced(function* (identityId: IdentityId, filter: MessageFilter) {
      const request = yield* pageOf(identityId, filter)
      const { before, atMost } = request
      const conditions = yield* conditionsOf(sql, filter)
      const { rows, lookedTo }: MessageSearch.Found =
        conditions.onContent.length === 0
          ? {
              rows: yield* listed<SummaryRow>(selected, identityId, conditions, before, filter.after, atMost),
              lookedTo: undefined,
            }
          : yield* searched(identityId, conditions, before, filter.after, atMost)
      const page: MessagePage = request.page(rows, summaryView, lookedTo)
      return page
    }, orUnavailable),

    /**
     * Lists messages as JSON texts. An unfiltered page has its own deadline and shares a statement with concurrent
     * requests.
     */
    listText: Effect.fnUntraced(function* (identityId: IdentityId, filter: MessageFilter) {
      const request = yield* pageOf(identityId, filter)
      const { before, atMost } = request
      if (isPlain(filter)) return request.page(yield* newest({ identityId, before, atMost }), summaryText, undefined)
      return yield* narrowed(identityId, filter, request)
    }),

    /** Lists messages after a UID, oldest first; `last` is the UID to continue from. */
    oldest: Effect.fn("MessageQueries.oldest")(function* (identityId: IdentityId, after: number, limit: number) {
      const found = yield* sql<SummaryRow>`
        select ${selected} from message m where m.identity_id = ${identityId} and not m.is_draft and m.uid > ${after}::int
        order by m.uid limit ${limit}`
      return { messages: found.map(summaryView), last: found.at(-1)?.uid ?? after }
    }, orUnavailable),

    /** Returns the folders that mail clients see. */
    folders: (identityId: IdentityId) =>
      orUnavailable(sql<{ name: string; use: string | null; subscribed: boolean }>`
        select f.name, f.use, s.name is not null as subscribed from folder f
        left join folder_subscription s on s.identity_id = f.identity_id and s.name = f.name
        where f.identity_id = ${identityId} order by f.name`),

    /** Returns the folders of messages, keyed by public message id. */
    places: (messages: ReadonlyArray<{ readonly id: string }>) =>
      orUnavailable(
        Effect.map(
          sql<{ id: string; names: ReadonlyArray<string> }>`
            select p.message_id as id, array_agg(distinct f.name) as names from placed p join folder f on f.id = p.folder_id
            where p.message_id = any(${messages.map(({ id }) => fromPublic("msg_", id) ?? "")}::uuid[]) group by p.message_id`,
          (rows) => new Map(rows.map(({ id, names }) => [toPublic("msg_", id), names])),
        ),
      ),

    /** Returns the public id of the newest message. */
    newest: (identityId: IdentityId) =>
      orUnavailable(
        Effect.map(
          sql<{ id: string }>`
            select id from message where identity_id = ${identityId} and not is_draft order by uid desc limit 1`,
          ([row]) => (row === undefined ? undefined : toPublic("msg_", row.id)),
        ),
      ),

    /** Returns the raw message as received, with our trace fields on top (RFC 5322). */
    raw: Effect.fn("MessageQueries.raw")(function* (identityId: IdentityId, id: string) {
      const uuid = fromPublic("msg_", id)
      const [found] =
        uuid === undefined
          ? []
          : yield* sql<{ bytes: number }>`
              select length(c.raw) as bytes from message m join message_content c on c.message_id = m.id
              where m.id = ${uuid} and m.identity_id = ${identityId} and not m.is_draft`
      if (found === undefined) return yield* missing
      const raw = yield* inSlices(
        found.bytes,
        (from, count) => sql<{ slice: Uint8Array }>`
          select substring(raw from ${from}::int for ${count}::int) as slice from message_content where message_id = ${uuid!}`,
      )
      if (raw === undefined) return yield* missing
      return raw
    }, orUnavailable),

    /** Returns the summary of one message. */
    summary: Effect.fn("MessageQueries.summary")(function* (identityId: IdentityId, id: string) {
      const [row] = yield* sql<SummaryRow>`
        select ${selected} from message m where m.id = ${fromPublic("msg_", id) ?? null}::uuid and m.identity_id = ${identityId} and not m.is_draft`
      return row === undefined ? yield* missing : summaryView(row)
    }, orUnavailable),

    read: Effect.fn("MessageQueries.read")(function* (identityId: IdentityId, id: string) {
      const uuid = fromPublic("msg_", id)
      if (uuid === undefined) return yield* missing
      const [row] = yield* sql<WholeRow>`
        select ${selected}, modseq, text_bytes, html_bytes, header_bytes, is_whole,
               case when is_whole then text_ end as text, case when is_whole then html_ end as html,
               case when is_whole then headers_::text end as headers
        from (
          select ${selected}, m.modseq::float8 as modseq, c.text as text_, c.html as html_, c.headers as headers_,
                 octet_length(c.text) as text_bytes, octet_length(c.html) as html_bytes,
                 octet_length(c.headers::text) as header_bytes,
                 coalesce(octet_length(c.text), 0) + coalesce(octet_length(c.html), 0) + pg_column_size(c.headers)
                   <= ${inOneAnswer}::int as is_whole
          from message m join message_content c on c.message_id = m.id
          where m.id = ${uuid} and m.identity_id = ${identityId} and not m.is_draft offset 0
        ) m`
      if (row === undefined) return yield* missing
      const [text, html, headers] = row.is_whole
        ? [row.text, row.html, row.headers]
        : [
            yield* body(uuid, "text", row.text_bytes),
            yield* body(uuid, "html", row.html_bytes),
            yield* body(uuid, "headers", row.header_bytes),
          ]
      // The message was removed while its parts were read.
      if (text === undefined || html === undefined || headers === undefined) return yield* missing
      const message: Message = {
        ...summaryView(row),
        text,
        html,
        text_reply: text === null ? null : textReply(text),
        links: html !== null ? linksOf(html) : Links.ofText(text ?? ""),
        headers: yield* Effect.orDie(decodeHeaders(headers)),
        ...(row.direction === "outbound" ? yield* outboundOf(sql, identityId, uuid) : {}),
      }
      return { message, modseq: row.modseq }
    }, orUnavailable),
  }
})

export class MessageQueries extends Context.Service<MessageQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/MessageQueries",
) {
  static readonly layer = Layer.effect(MessageQueries, make)
}

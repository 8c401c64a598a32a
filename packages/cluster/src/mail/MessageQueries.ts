/** A Mailbox as callers read it: newest first, and one message whole. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { Header, type Message, type MessageSummary, StoredSummary } from "@svc/domain/mail/Message"
import { NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer, Schema } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"

const SummaryRow = Schema.Struct({
  id: Schema.String,
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
}

/** Read in slices: the driver gives up a connection on a message over 16 MiB (traps.md 10). */
const sliceBytes = 8 * 1024 * 1024

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const columns = sql`message.id, direction, thread_id, tag, message.message_id, size, summary, received_at`
  const missing = Effect.fail(new NotFound({ detail: "There is no such message." }))
  const views = (rows: ReadonlyArray<unknown>) =>
    Effect.map(Effect.orDie(decodeSummaries(rows)), (decoded) => decoded.map(summaryView))

  /** Substrings of sender, recipients, subject and bodies, whatever the case. */
  const matching = (query: string) =>
    sql`exists (select from message_content c where c.message_id = message.id and strpos(c.search_text, ${query.toLowerCase()}) > 0)`

  return {
    /** Newest first. An id that was not given here matches nothing. */
    list: Effect.fn("MessageQueries.list")(function* (identityId: IdentityId, filter: MessageFilter) {
      const thread = filter.thread_id === undefined ? undefined : fromPublic("thr_", filter.thread_id)
      const after = filter.after === undefined ? undefined : fromPublic("msg_", filter.after)
      const rows = yield* sql`
        select ${columns} from message where identity_id = ${identityId}
          ${filter.direction === undefined ? sql`` : sql`and direction = ${filter.direction}`}
          ${filter.tag === undefined ? sql`` : sql`and tag = ${filter.tag.toLowerCase()}`}
          ${filter.thread_id === undefined ? sql`` : sql`and thread_id = ${thread ?? null}::uuid`}
          ${filter.after === undefined ? sql`` : sql`and id > ${after ?? null}::uuid`}
          ${filter.query === undefined || filter.query === "" ? sql`` : sql`and ${matching(filter.query)}`}
        order by id desc limit ${filter.limit} offset ${filter.offset}`
      return yield* views(rows)
    }, orUnavailable),

    /** Oldest first, from behind one. */
    oldest: Effect.fn("MessageQueries.oldest")(function* (
      identityId: IdentityId,
      after: string | undefined,
      limit: number,
    ) {
      const behind = after === undefined ? undefined : fromPublic("msg_", after)
      return yield* views(
        yield* sql`
        select ${columns} from message where identity_id = ${identityId}
          ${behind === undefined ? sql`` : sql`and id > ${behind}::uuid`}
        order by id limit ${limit}`,
      )
    }, orUnavailable),

    /** The newest message there is, by its public id. */
    newest: (identityId: IdentityId) =>
      orUnavailable(
        Effect.map(
          sql<{ id: string }>`select id from message where identity_id = ${identityId} order by id desc limit 1`,
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
      const slices: Array<Uint8Array> = []
      for (let at = 0; at < found.bytes; at += sliceBytes) {
        const [slice] = yield* sql<{ raw: Uint8Array }>`
          select substring(raw from ${at + 1}::int for ${sliceBytes}::int) as raw from message_content where message_id = ${uuid!}`
        if (slice === undefined) return yield* missing
        slices.push(slice.raw)
      }
      return new Uint8Array(Buffer.concat(slices))
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

/** A Mailbox as callers read it: newest first, and one message whole. */
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

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const columns = sql`id, direction, thread_id, tag, message.message_id, size, summary, received_at`
  const missing = Effect.fail(new NotFound({ detail: "There is no such message." }))

  return {
    list: (identityId: string, page: { readonly limit: number; readonly offset: number }) =>
      orUnavailable(
        sql`select ${columns} from message where identity_id = ${identityId} order by id desc limit ${page.limit} offset ${page.offset}`.pipe(
          Effect.flatMap((rows) => Effect.orDie(decodeSummaries(rows))),
          Effect.map((rows) => rows.map(summaryView)),
        ),
      ),
    read: Effect.fn("MessageQueries.read")(function* (identityId: string, id: string) {
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

/**
 * The bodies of messages. Small ones travel with the message to its actor; a large one is stored by the gateway
 * beforehand, so that it does not cross processes, and counts only once its message's commit claims it.
 */
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** Raw messages above this size (bytes) are stored before the actor is asked. */
export const carriedAtMost = 256 * 1024

/** Bytes of a body in one statement: the driver copies what it sends, more than once, while everybody else waits. */
const sentAtMost = 1024 * 1024

const columns = ["message_id", "raw", "text", "html", "headers", "search_text", "structure", "created_at"]

const lost = new Unavailable({ detail: "The message could not be stored.", retry_after_seconds: 5 })

/**
 * Stores a large body ahead of its message. A very large one goes in slices, which the store puts together; slices that
 * are not there any more (a store that was restarted forgets them) are told, and the message is brought again.
 */
export const storeAhead = Effect.fnUntraced(function* (sql: Sql, messageId: string, content: Content, at: Date) {
  const { raw } = content
  const others = sql`${content.text}::text, ${content.html}::text, ${JSON.stringify(content.headers)}::jsonb,
    ${content.search_text}::text, ${content.structure ?? null}::text, ${at}::timestamptz`
  const into = sql.literal(`insert into message_content (${columns.join(", ")})`)
  if (raw.length <= sentAtMost) {
    yield* sql`${into} values (${messageId}::uuid, ${raw}::bytea, ${others}) on conflict (message_id) do nothing`
    return
  }
  for (let n = 0; n * sentAtMost < raw.length; n++) {
    const bytes = raw.subarray(n * sentAtMost, (n + 1) * sentAtMost)
    yield* sql`
      insert into message_slice (message_id, n, bytes, created_at)
      values (${messageId}::uuid, ${n}::int, ${bytes}::bytea, ${at}::timestamptz)`
  }
  const [row] = yield* sql<{ bytes: number }>`
    with slices as (delete from message_slice where message_id = ${messageId}::uuid returning n, bytes),
    whole as (select string_agg(bytes, ''::bytea order by n) as raw from slices),
    stored as (
      ${into} select ${messageId}::uuid, raw, ${others} from whole where length(raw) = ${raw.length}::int
      on conflict (message_id) do nothing
    )
    select coalesce(length(raw), 0) as bytes from whole`
  if (row?.bytes !== raw.length) return yield* lost
})

/** Read in slices: the driver gives up a connection on an answer over 16 MiB. */
const sliceBytes = 8 * 1024 * 1024

/** A column of so many bytes, read by `slice(from, count)`, `from` being 1 for the first; undefined when it went meanwhile. */
export const inSlices = Effect.fnUntraced(function* (
  bytes: number,
  slice: (from: number, count: number) => Effect.Effect<ReadonlyArray<{ slice: Uint8Array }>, SqlError.SqlError>,
) {
  const slices: Array<Uint8Array> = []
  for (let at = 0; at < bytes; at += sliceBytes) {
    const [row] = yield* slice(at + 1, sliceBytes)
    if (row === undefined) return undefined
    slices.push(row.slice)
  }
  return new Uint8Array(Buffer.concat(slices))
})

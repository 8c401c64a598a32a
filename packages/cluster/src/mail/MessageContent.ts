/**
 * Stores and reads message bodies. A small body travels with its message to the actor. The gateway stores a large body
 * in advance, so that it does not cross processes; it only counts once the commit of its message claims it.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { Content } from "@svc/domain/mail/MailboxProtocol"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"

/** Raw messages above this size (bytes) are stored before the actor is called. */
export const carriedAtMost = 256 * 1024

/**
 * Maximum bytes of one statement. The driver copies what it sends several times and blocks the event loop meanwhile.
 */
export const sentAtMost = 1024 * 1024

/** A part above this size (bytes) is stored in slices if the body does not fit into one statement. */
const slicedAbove = 64 * 1024

const columns = ["message_id", "raw", "text", "html", "headers", "search_text", "structure", "created_at"]

/** The parts that can be large, in the order in which their slices are numbered. */
const parts = ["raw", "text", "html", "search_text", "structure"] as const
/** Range of slice numbers reserved for each part; far more than a part can have. */
const numbers = 1_000_000

const lost = new Unavailable({ detail: "The message could not be stored.", retry_after_seconds: 5 })

/** Stores a part in slices numbered from `from`, under an id that nothing else uses. */
export const storeSlices = Effect.fnUntraced(function* (
  sql: Sql,
  id: string,
  from: number,
  bytes: Uint8Array,
  at: Date,
) {
  for (let slice = 0; slice * sentAtMost < bytes.length; slice++) {
    yield* sql`
      insert into message_slice (message_id, n, bytes, created_at)
      values (${id}::uuid, ${from + slice}::int,
              ${bytes.subarray(slice * sentAtMost, (slice + 1) * sentAtMost)}::bytea, ${at}::timestamptz)`
  }
})

/**
 * Stores a large body before its message. A very large body is sent in slices, which the database concatenates. If
 * slices are missing (a restarted database drops unlogged tables), the call fails and the client sends the message
 * again.
 */
export const storeAhead = Effect.fnUntraced(function* (sql: Sql, messageId: string, content: Content, at: Date) {
  const { raw, text, html, search_text } = content
  const structure = content.structure ?? null
  const headers = JSON.stringify(content.headers)
  const into = sql.literal(`insert into message_content (${columns.join(", ")})`)
  // A rejected draft that is changed and sent again has the same id, so an unclaimed body is replaced.
  const again = sql.literal(
    `on conflict (message_id) do update set ${columns
      .slice(1)
      .map((column) => `${column} = excluded.${column}`)
      .join(", ")} where message_content.identity_id is null`,
  )
  const characters = [text, html, search_text, structure, headers].reduce((sum, one) => sum + (one?.length ?? 0), 0)
  if (raw.length + characters <= sentAtMost) {
    yield* sql`${into} values (${messageId}::uuid, ${raw}::bytea, ${text}::text, ${html}::text, ${headers}::jsonb,
      ${search_text}::text, ${structure}::text, ${at}::timestamptz) ${again}`
    return
  }
  // A repeated request has the same message id, and its interrupted first attempt may have left slices. So the slices of
  // each attempt have an id of their own.
  const attempt = yield* makeUuidV7
  const sliced = new Map<(typeof parts)[number], number>()
  for (const [n, part] of parts.entries()) {
    const value = { raw, text, html, search_text, structure }[part]
    if (value === null || (part !== "raw" && value.length <= slicedAbove)) continue
    const bytes = typeof value === "string" ? Buffer.from(value) : value
    sliced.set(part, bytes.length)
    yield* storeSlices(sql, attempt, n * numbers, bytes, at)
  }
  const whole = (part: (typeof parts)[number]) =>
    sql.literal(`string_agg(bytes, ''::bytea order by n) filter (where n / ${numbers} = ${parts.indexOf(part)})`)
  const either = (part: Exclude<(typeof parts)[number], "raw">, value: string | null) =>
    sliced.has(part) ? sql`convert_from(${sql.literal(`${part}_bytes`)}, 'UTF8')` : sql`${value}::text`
  const total = sliced.values().reduce((sum, bytes) => sum + bytes, 0)
  const [row] = yield* sql<{ bytes: number }>`
    with slices as (delete from message_slice where message_id = ${attempt}::uuid returning n, bytes),
    whole as (
      select coalesce(sum(length(bytes)), 0)::int as bytes, ${whole("raw")} as raw, ${whole("text")} as text_bytes,
        ${whole("html")} as html_bytes, ${whole("search_text")} as search_text_bytes,
        ${whole("structure")} as structure_bytes
      from slices
    ),
    stored as (
      ${into} select ${messageId}::uuid, raw, ${either("text", text)}, ${either("html", html)}, ${headers}::jsonb,
        ${either("search_text", search_text)}, ${either("structure", structure)}, ${at}::timestamptz
      from whole where bytes = ${total}::int
      ${again}
    )
    select bytes from whole`
  if (row?.bytes !== total) return yield* lost
})

/** Size of a slice in bytes when reading. The driver copies a response several times and fails above 16 MiB. */
const sliceBytes = 1024 * 1024

/**
 * Reads a column of `bytes` bytes through `slice(from, count)`, where the first byte is 1. Returns undefined if the row
 * was deleted meanwhile.
 */
export const inSlices = Effect.fnUntraced(function* (
  bytes: number,
  slice: (from: number, count: number) => Effect.Effect<ReadonlyArray<{ slice: Uint8Array }>, SqlError.SqlError>,
) {
  const whole = new Uint8Array(bytes)
  for (let at = 0; at < bytes; at += sliceBytes) {
    const [row] = yield* slice(at + 1, sliceBytes)
    if (row === undefined) return undefined
    whole.set(row.slice, at)
  }
  return whole
})

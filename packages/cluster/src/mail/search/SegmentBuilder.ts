/**
 * Builds search segments in the background, 256 messages at a time, which costs a tenth of indexing each message. One
 * process of the cluster builds them, one commit per segment. Searches scan messages that have no segment yet, so no
 * command waits for the builder.
 */
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import type { SqlError } from "effect/sql"
import * as Singletons from "../../observe/Singletons.ts"
import { type Sql, Unhurried } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"
import { RecentTexts } from "./RecentTexts.ts"
import * as Postings from "./Postings.ts"
import { firstUid } from "./Segments.ts"

/** Due segments per query. */
const batch = 64

/** Characters read per statement. */
const portion = 512 * 1024

/** Characters processed, and buckets encoded, before other work gets a turn. */
const turn = { characters: 64 * 1024, buckets: 8 }

interface Due {
  readonly identity_id: string
  readonly segment: number
  readonly changes: number
}

interface Message {
  readonly uid: number
  readonly id: string
  /** Bytes of the search text. */
  readonly bytes: number
}

/** Splits messages into batches whose texts are read by one statement. */
const portions = (messages: ReadonlyArray<Message>): ReadonlyArray<ReadonlyArray<number>> => {
  const all: Array<Array<number>> = []
  let room = 0
  for (const { uid, bytes } of messages) {
    room -= bytes
    if (room < 0 || all.length === 0) {
      all.push([])
      room = portion - bytes
    }
    all.at(-1)!.push(uid)
  }
  return all
}

/** Returns the postings of all messages in a segment, by bucket. */
const gathered = Effect.fnUntraced(function* (sql: Sql, { identity_id, segment }: Due, postings: Postings.Postings) {
  const first = firstUid(segment)
  const messages = yield* sql<Message>`
    select m.uid, m.id, octet_length(c.search_text) as bytes
    from message m join message_content c on c.message_id = m.id
    where m.identity_id = ${identity_id} and m.uid >= ${first}::int and m.uid < ${firstUid(segment + 1)}::int order by m.uid`
  const fresh = yield* RecentTexts
  postings.clear()
  let since = 0
  const add = Effect.fnUntraced(function* (uid: number, text: string) {
    for (let at = 0; at < text.length; at += turn.characters) {
      postings.add(uid - first, text, at, at + turn.characters)
      since += Math.min(text.length - at, turn.characters)
      if (since < turn.characters) continue
      since = 0
      yield* Effect.yieldNow
    }
  })
  const unread: Array<Message> = []
  for (const message of messages) {
    const text = fresh.take(message.id)
    if (text === undefined) unread.push(message)
    else yield* add(message.uid, text)
  }
  for (const uids of portions(unread)) {
    const texts = yield* sql<{ uid: number; text: string }>`
      select m.uid, c.search_text as text from message m join message_content c on c.message_id = m.id
      where m.identity_id = ${identity_id} and m.uid = any(${uids}::int[])`
    for (const { uid, text } of texts) yield* add(uid, text)
  }
  const buckets: Array<Postings.Bucket> = []
  for (const bucket of postings.buckets()) {
    buckets.push(bucket)
    if (buckets.length % turn.buckets === 0) yield* Effect.yieldNow
  }
  return buckets
})

const postpone = (sql: Sql, { identity_id, segment }: Due) => sql`
  update search_due set due_at = now() + interval '10 minutes' where identity_id = ${identity_id} and segment = ${segment}::int`

/** Builds and stores a segment. It stays due if it changed meanwhile. */
const make = Effect.fnUntraced(function* (sql: Sql, due: Due, postings: Postings.Postings) {
  const { identity_id, segment, changes } = due
  const buckets = yield* gathered(sql, due, postings)
  const numbers = buckets.map(({ bucket }) => bucket)
  yield* sql`
    with box as materialized (select identity_id from mailbox where identity_id = ${identity_id} for key share),
    emptied as (
      delete from search_segment s using box
      where s.identity_id = box.identity_id and s.segment = ${segment}::int and s.bucket <> all (${numbers}::int[])
    ),
    stored as (
      insert into search_segment (identity_id, bucket, segment, entries)
      select box.identity_id, b.bucket, ${segment}::int, b.entries
      from box, unnest(${numbers}::int[], ${buckets.map(({ entries }) => entries)}::bytea[]) as b (bucket, entries)
      on conflict (identity_id, bucket, segment) do update set entries = excluded.entries
    )
    delete from search_due d using box
    where d.identity_id = box.identity_id and d.segment = ${segment}::int and d.changes = ${changes}::int`
})

/** Builds all due segments and returns their number. */
export const run: Effect.Effect<number, SqlError.SqlError, Unhurried> = Effect.gen(function* () {
  const sql = yield* Unhurried
  let count = 0
  let postings: Postings.Postings | undefined
  while (true) {
    const due = yield* sql<Due>`
      select identity_id, segment, changes from search_due where due_at <= now() order by due_at, identity_id, segment
      limit ${sql.literal(String(batch))}`
    for (const one of due) {
      postings ??= Postings.make()
      yield* make(sql, one, postings).pipe(
        // A segment that fails does not block the others.
        Effect.catchCause((cause) =>
          Effect.andThen(Effect.logWarning("A search segment could not be built", cause), postpone(sql, one)),
        ),
      )
    }
    count += due.length
    if (due.length < batch) return count
  }
})

export const layer = Singleton.make(
  "Segmenting",
  run.pipe(
    Effect.tap(Effect.map(Clock.currentTimeMillis, (now) => Singletons.recordRun("Segmenting", now))),
    Effect.catchCause((cause) => Effect.logWarning("A search segment could not be built", cause)),
    Effect.repeat(Schedule.spaced(Timing.segmenting)),
    Effect.asVoid,
  ),
)

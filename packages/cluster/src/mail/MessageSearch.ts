/**
 * Finding messages by their text, newest first. Two ways lead to them: walking from the newest one down, which is short
 * for what many messages have, and the index of trigrams, which is short for what few have. The first steps of the walk
 * say which of the two it will be: how often they found something. What has no trigram, or where there is no index, is
 * walked for; a walk that takes long ends with what it found, and the page after it goes on from there.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { lastingMillis } from "@svc/domain/Lasting"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import type { SearchIndex } from "../store/SearchIndex.ts"
import { Timing } from "../Timing.ts"
import { all, type Conditions } from "./MessageFilters.ts"
import { columns, type SummaryRow } from "./MessageRows.ts"

/** Messages in the first step of a walk, by which the rest of the way is chosen, and in each one after it. */
const steps = { first: 200, further: 500 }

export interface Found {
  readonly rows: ReadonlyArray<SummaryRow>
  /** The UID that was looked at last, where there are more to look at. */
  readonly lookedTo: number | undefined
}

/** Whether the index can tell where a text is: three letters or digits in a row make a trigram. */
export const hasTrigram = ({ exists, knowsAllLetters }: SearchIndex, text: string) =>
  exists && (knowsAllLetters ? /[\p{L}\p{N}]{3}/u : /[a-z0-9]{3}/).test(text)

export const make = (sql: Sql, present: Effect.Effect<SearchIndex, SqlError.SqlError>) => {
  const selected = columns(sql)

  const walked = (
    identityId: IdentityId,
    { onMessage, onContent }: Conditions,
    before: number,
    to: number,
    atMost: number,
  ) => sql<SummaryRow>`
    select ${selected} from message m join message_content c on c.message_id = m.id
    where m.identity_id = ${identityId} and not m.is_draft and m.uid < ${before}::int and m.uid >= ${to}::int
      ${all(sql, onMessage)} ${all(sql, onContent)}
    order by m.uid desc limit ${atMost}`

  const indexed = (
    identityId: IdentityId,
    { onMessage, onContent }: Conditions,
    low: number,
    before: number,
    atMost: number,
  ) => sql<SummaryRow>`
    with hits as materialized (
      select c.message_id from message_content c where c.identity_id = ${identityId} ${all(sql, onContent)}
    )
    select ${selected} from hits join message m on m.id = hits.message_id
    where m.identity_id = ${identityId} and not m.is_draft and m.uid < ${before}::int and m.uid > ${low}::int ${all(sql, onMessage)}
    order by m.uid desc limit ${atMost}`

  /** The UID of the so many-th message from a place down; undefined where there are not so many. */
  const stepTo = (identityId: IdentityId, low: number, before: number, size: number) =>
    Effect.map(
      sql<{ uid: number }>`
        select uid from message where identity_id = ${identityId} and uid < ${before}::int and uid > ${low}::int
        order by uid desc offset ${size - 1}::int limit 1`,
      ([row]) => row?.uid,
    )

  /** At most `atMost` messages between two UIDs. */
  return Effect.fn("MessageSearch.find")(function* (
    identityId: IdentityId,
    conditions: Conditions,
    { low, high }: { readonly low: number; readonly high: number },
    atMost: number,
  ): Effect.fn.Return<Found, SqlError.SqlError> {
    const deadline = (yield* lastingMillis) + Timing.searchMillis
    const index = yield* present
    const byIndex = conditions.texts.some((text) => hasTrigram(index, text))
    const rows: Array<SummaryRow> = []
    let before = high
    let looked = 0
    while (true) {
      const size = looked === 0 ? steps.first : steps.further
      const to = yield* stepTo(identityId, low, before, size)
      rows.push(...(yield* walked(identityId, conditions, before, to ?? low + 1, atMost - rows.length)))
      if (rows.length >= atMost || to === undefined) return { rows, lookedTo: undefined }
      before = to
      looked += size
      // By the rate so far: messages to walk past until the page is full, and messages that the index would give.
      const rate = rows.length / looked
      const left = Math.min(before - low, rate === 0 ? Infinity : (atMost - rows.length) / rate)
      if (byIndex && rate * (before - low) < left) {
        return {
          rows: [...rows, ...(yield* indexed(identityId, conditions, low, before, atMost - rows.length))],
          lookedTo: undefined,
        }
      }
      if ((yield* lastingMillis) > deadline) return { rows, lookedTo: before }
    }
  })
}

/**
 * Searches messages by text, newest first. The newest messages are scanned, since they are in no segment yet. For older
 * messages the segments (`search/Segments`) name candidates, which are checked a few at a time until the page is full.
 * A query of a single character has no gram and scans all messages. A search that reaches its time limit returns what
 * it found, and the next page continues from there.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { all, type Conditions } from "./MessageFilters.ts"
import { columns, type SummaryRow } from "./MessageRows.ts"
import * as Grams from "./search/Grams.ts"
import * as Segments from "./search/Segments.ts"

/** Messages per scan step. */
const step = 500

/** Maximum number of segments per query. */
const termsAtMost = 64

/**
 * Estimates how many segments fill the page, plus half as many again, if matches are as frequent as in the scanned
 * messages.
 */
const enough = (missing: number, found: number, walked: number): number =>
  found === 0 ? termsAtMost : Math.min(termsAtMost, Math.ceil((1.5 * missing * walked) / (found * Segments.size)))

/** Candidates checked together in addition to the room left on the page. */
const spare = 16

export interface Found {
  readonly rows: ReadonlyArray<SummaryRow>
  /** The last UID that was checked; undefined if the search is complete. */
  readonly lookedTo: number | undefined
}

export const make = (sql: Sql) => {
  const selected = columns(sql)
  const segments = Segments.make(sql)

  const walked = (
    identityId: IdentityId,
    { onMessage, onContent }: Conditions,
    first: number,
    last: number,
    atMost: number,
  ) => sql<SummaryRow>`
    select ${selected} from message m join message_content c on c.message_id = m.id
    where m.identity_id = ${identityId} and not m.is_draft and m.uid <= ${last}::int and m.uid >= ${first}::int
      ${all(sql, onMessage)} ${all(sql, onContent)}
    order by m.uid desc limit ${atMost}`

  const among = (
    identityId: IdentityId,
    { onMessage, onContent }: Conditions,
    uids: ReadonlyArray<number>,
    atMost: number,
  ) => sql<SummaryRow>`
    select ${selected} from message m join message_content c on c.message_id = m.id
    where m.identity_id = ${identityId} and not m.is_draft and m.uid = any(${uids}::int[])
      ${all(sql, onMessage)} ${all(sql, onContent)}
    order by m.uid desc limit ${atMost}`

  /** Returns the lowest UID of the next scan step, or `first` if fewer messages remain. */
  const stepTo = (identityId: IdentityId, first: number, last: number) =>
    last - first < step
      ? Effect.succeed(first)
      : Effect.map(
          sql<{ uid: number }>`
            select uid from message where identity_id = ${identityId} and uid <= ${last}::int and uid >= ${first}::int
            order by uid desc offset ${step - 1}::int limit 1`,
          ([row]) => row?.uid ?? first,
        )

  /** Finds at most `atMost` messages between two UIDs. */
  return Effect.fn("MessageSearch.find")(function* (
    identityId: IdentityId,
    conditions: Conditions,
    { low, high }: { readonly low: number; readonly high: number },
    atMost: number,
  ): Effect.fn.Return<Found, SqlError.SqlError> {
    const deadline = (yield* monotonicMillis) + Timing.searchMillis
    const wanted = Grams.gramsOf(conditions.texts)
    const built = wanted.length === 0 ? { complete: 0, missing: new Set<number>() } : yield* segments.built(identityId)
    const rows: Array<SummaryRow> = []
    let walkedThrough = 0
    let atOnce = 0
    for (const { first, last, isBuilt } of Segments.spans(built, low, high)) {
      let next = last
      while (next >= first) {
        if (isBuilt) {
          atOnce =
            atOnce === 0 ? enough(atMost - rows.length, rows.length, walkedThrough) : Math.min(termsAtMost, atOnce * 2)
          const to = Math.max(first, Segments.firstUid(Segments.of(next) - atOnce + 1))
          const uids = yield* segments.candidates(identityId, wanted, to, next)
          next = to - 1
          for (let at = 0; at < uids.length;) {
            const few = uids.slice(at, at + atMost - rows.length + spare)
            at += few.length
            rows.push(...(yield* among(identityId, conditions, few, atMost - rows.length)))
            if (rows.length >= atMost) return { rows, lookedTo: undefined }
            if (at < uids.length && (yield* monotonicMillis) > deadline) return { rows, lookedTo: few.at(-1)! }
          }
        } else {
          const to = yield* stepTo(identityId, first, next)
          rows.push(...(yield* walked(identityId, conditions, to, next, atMost - rows.length)))
          walkedThrough += next - to + 1
          next = to - 1
          if (rows.length >= atMost) return { rows, lookedTo: undefined }
        }
        if (next > low && (yield* monotonicMillis) > deadline) return { rows, lookedTo: next + 1 }
      }
    }
    return { rows, lookedTo: undefined }
  })
}

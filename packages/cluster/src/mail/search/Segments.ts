/**
 * Finds candidates for a text in the search segments of a Mailbox, each of which covers 256 UIDs. Messages without a
 * segment, mainly the newest, can contain any text. UIDs are assigned in commit order, so a segment is complete once
 * its last UID was assigned.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sql } from "../../store/Database.ts"
import type * as Grams from "./Grams.ts"
import * as Postings from "./Postings.ts"

/** The segments that can be queried: those before `complete` that are not in `missing`. */
interface Built {
  readonly complete: number
  readonly missing: ReadonlySet<number>
}

/** UIDs per segment. */
export const size = Postings.places

export const of = (uid: number): number => Math.floor((uid - 1) / Postings.places)
export const firstUid = (segment: number): number => segment * Postings.places + 1

/** A range of UIDs that is either entirely covered by segments or not at all. */
interface Span {
  readonly first: number
  readonly last: number
  readonly isBuilt: boolean
}

/** Splits the UIDs between `low` and `high` (both exclusive) into spans, newest first. */
export function* spans({ complete, missing }: Built, low: number, high: number): Generator<Span> {
  const isBuilt = (segment: number) => segment < complete && !missing.has(segment)
  let last = high - 1
  while (last > low) {
    let segment = Math.min(of(last), complete)
    const built = isBuilt(segment)
    while (firstUid(segment) > low + 1 && isBuilt(segment - 1) === built) segment--
    const first = Math.max(low + 1, firstUid(segment))
    yield { first, last, isBuilt: built }
    last = first - 1
  }
}

export const make = (sql: Sql) => {
  const built = (identityId: string): Effect.Effect<Built, SqlError.SqlError> =>
    Effect.map(
      sql<{ complete: number; missing: ReadonlyArray<number> }>`
        select (uid_next - 1) / ${sql.literal(String(Postings.places))} as complete,
               array(select segment from search_due where identity_id = ${identityId} and not built) as missing
        from mailbox where identity_id = ${identityId}`,
      ([row]) => ({ complete: row?.complete ?? 0, missing: new Set(row?.missing) }),
    )

  /**
   * Returns the UIDs between `first` and `last` whose messages may contain the wanted grams, newest first. All of them
   * must be covered by segments.
   */
  const candidates = Effect.fnUntraced(function* (
    identityId: string,
    wanted: ReadonlyArray<Grams.GramRange>,
    first: number,
    last: number,
  ): Effect.fn.Return<Array<number>, SqlError.SqlError> {
    const buckets = [...new Set(wanted.map(({ bucket }) => bucket))]
    const rows = yield* sql<{ segment: number; bucket: number; entries: Uint8Array }>`
      select segment, bucket, entries from search_segment
      where identity_id = ${identityId} and bucket = any(${buckets}::int[])
        and segment >= ${of(first)}::int and segment <= ${of(last)}::int`
    const found = new Map<number, Map<number, Uint8Array>>()
    for (const { segment, bucket, entries } of rows) {
      const own = found.get(segment) ?? new Map<number, Uint8Array>()
      found.set(segment, own.set(bucket, entries))
    }
    const uids: Array<number> = []
    for (let segment = of(last); segment >= of(first); segment--) {
      const own = found.get(segment)
      // A missing bucket has no entries.
      if (own === undefined || own.size < buckets.length) continue
      const having = Postings.everywhere()
      for (const one of wanted) Postings.narrow(having, own.get(one.bucket)!, one)
      for (const place of Postings.placesOf(having)) {
        const uid = firstUid(segment) + place
        if (uid >= first && uid <= last) uids.push(uid)
      }
    }
    return uids
  })

  return { built, candidates }
}

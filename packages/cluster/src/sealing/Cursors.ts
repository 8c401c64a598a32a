/**
 * Cursor pagination of lists. A cursor contains the position of the last entry of a page, authenticated for its list, so
 * that it cannot be forged or used for another list.
 */
import { maxLimit, type PageRequest } from "@svc/domain/Paging"
import { InvalidCursor } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Sealing } from "./Sealing.ts"

interface Page<A> {
  readonly entries: ReadonlyArray<A>
  readonly next_cursor: string | null
}

/** Query parameters that select a part of the list and are not filters. `after` is a position, which long polls set. */
const pageParameters = new Set(["limit", "offset", "cursor", "after"])

/**
 * Returns the name of a filtered list, so that a cursor is only valid for the same filter. The order of members and
 * undefined members make no difference.
 */
export const filteredList = (list: string, filter: object): string => {
  const members = Object.entries(filter)
    .filter(([name, value]) => value !== undefined && !pageParameters.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return members.length === 0 ? list : `${list}?${JSON.stringify(members)}`
}

export const invalidCursor = () =>
  new InvalidCursor({
    detail:
      "The cursor was not issued by this service for this list. Pass it with the same path and filters as the request that returned it, or start without one.",
  })

/**
 * Returns one page of a list. `read` returns up to `atMost` rows after a position, or from the start if the position is
 * undefined. `placeOf` returns the position of a row.
 */
export const page = <Row, A, E, R>(
  sealing: Sealing["Service"],
  list: string,
  { limit, cursor }: PageRequest,
  read: (behind: string | undefined, atMost: number) => Effect.Effect<ReadonlyArray<Row>, E, R>,
  placeOf: (row: Row) => string,
  view: (row: Row) => A,
): Effect.Effect<Page<A>, E | InvalidCursor, R> =>
  Effect.gen(function* () {
    const behind = cursor === undefined ? undefined : sealing.unstamp(`list/${list}`, cursor)
    if (cursor !== undefined && behind === undefined) {
      return yield* invalidCursor()
    }
    const rows = yield* read(behind, limit + 1)
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    const next_cursor = rows.length > limit && last !== undefined ? sealing.stamp(`list/${list}`, placeOf(last)) : null
    return { entries: shown.map(view), next_cursor }
  })

/** Returns all entries of a list, which it reads in pages. */
export const all = <A, E, R>(
  list: (request: PageRequest) => Effect.Effect<Page<A>, E | InvalidCursor, R>,
): Effect.Effect<ReadonlyArray<A>, Exclude<E, InvalidCursor>, R> =>
  Effect.gen(function* () {
    const entries: Array<A> = []
    let cursor: string | undefined
    do {
      const found = yield* list({ limit: maxLimit, cursor })
      entries.push(...found.entries)
      cursor = found.next_cursor ?? undefined
    } while (cursor !== undefined)
    return entries
  }).pipe(Effect.catchIf((error) => error instanceof InvalidCursor, Effect.die)) as Effect.Effect<
    ReadonlyArray<A>,
    Exclude<E, InvalidCursor>,
    R
  >

/**
 * Pages of lists. A cursor is the place of the last entry of a page, stamped for its list, so that it leads nowhere in
 * another one and nobody can make one up.
 */
import { maxLimit, type PageRequest } from "@svc/domain/Paging"
import { InvalidCursor } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Sealing } from "./Sealing.ts"

export interface Page<A> {
  readonly entries: ReadonlyArray<A>
  readonly next_cursor: string | null
}

/**
 * Members of a query that say which part of the list is wanted, not what the list is narrowed by. `after` is a place in the
 * list, which waiting for messages sets by itself.
 */
const ofPages = new Set(["limit", "offset", "cursor", "after"])

/**
 * Returns the name of a list as a filter narrows it, so that a cursor of one filter leads nowhere under another. Members
 * that are undefined do not count, and neither does their order.
 */
export const narrowed = (list: string, filter: object): string => {
  const members = Object.entries(filter)
    .filter(([name, value]) => value !== undefined && !ofPages.has(name))
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return members.length === 0 ? list : `${list}?${JSON.stringify(members)}`
}

export const foreignCursor = () =>
  new InvalidCursor({
    detail:
      "The cursor was not issued by this service for this list. Pass it with the same path and filters as the request that returned it, or begin without one.",
  })

/**
 * One page of a list: `read` answers up to so many rows from behind a place (undefined: from the beginning), and
 * `placeOf` says where a row stands.
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
      return yield* foreignCursor()
    }
    const rows = yield* read(behind, limit + 1)
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    const next_cursor = rows.length > limit && last !== undefined ? sealing.stamp(`list/${list}`, placeOf(last)) : null
    return { entries: shown.map(view), next_cursor }
  })

/** Every entry of a list, page by page. */
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

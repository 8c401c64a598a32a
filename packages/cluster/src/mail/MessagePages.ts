/**
 * Reads unfiltered pages of Mailboxes, newest first. Concurrent requests share one statement, since the round trip is a
 * quarter of the cost of such a page. Filtered lists run their own statements, because their duration is unpredictable.
 */
import { maxLimit } from "@svc/domain/Paging"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import * as Batcher from "../store/Batcher.ts"
import { type Sql, together } from "../store/Database.ts"
import { textColumns, type TextRow } from "./MessageRows.ts"

/** A page of the newest messages, optionally only those before a UID. */
interface PageQuery {
  readonly identityId: IdentityId
  readonly before: number | undefined
  readonly atMost: number
}

/** Maximum rows of one statement: two of the largest pages. */
const heaviest = { weight: 2 * (maxLimit + 1), of: ({ atMost }: PageQuery) => atMost }

/** The highest possible UID. */
const lastOfAll = 2 ** 31 - 1

/**
 * Returns a function that reads a page. `one` reads a single page, which costs a fifth less than the shared statement.
 */
export const make = (sql: Sql, one: (page: PageQuery) => Effect.Effect<ReadonlyArray<TextRow>, SqlError.SqlError>) => {
  const columns = textColumns(sql)

  const several = (requested: ReadonlyArray<PageQuery>) =>
    Effect.map(
      // The subselects hide the array lengths from the planner; otherwise it would plan again for each length.
      sql<TextRow & { readonly requested: number }>`
        select a.requested::int as requested, m.* from unnest(
          (select ${requested.map(({ identityId }) => identityId)}::uuid[]),
          (select ${requested.map(({ before }) => (before === undefined ? lastOfAll : before - 1))}::int[]),
          (select ${requested.map(({ atMost }) => atMost)}::int[])) with ordinality as a (identity_id, last, at_most, requested)
        cross join lateral (
          select ${columns} from message m
          where m.identity_id = a.identity_id and not m.is_draft and m.uid <= a.last
          order by m.uid desc limit a.at_most) m`,
      (rows) => {
        const pages: ReadonlyArray<Array<TextRow>> = requested.map(() => [])
        for (const row of rows) pages[row.requested - 1]!.push(row)
        // A join guarantees no order. The rows are usually sorted already, so this sort only checks them.
        for (const page of pages) page.sort((a, b) => b.uid - a.uid)
        return pages
      },
    )

  return together(
    (requested: ReadonlyArray<PageQuery>): Effect.Effect<ReadonlyArray<ReadonlyArray<TextRow>>, SqlError.SqlError> =>
      requested.length === 1 ? Effect.map(one(requested[0]!), (rows) => [rows]) : several(requested),
    { ...Batcher.usual, heaviest },
  )
}

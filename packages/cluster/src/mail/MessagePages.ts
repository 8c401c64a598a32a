/**
 * Pages of Mailboxes that nothing narrows, newest first: those that are asked for at the same time are one statement, since
 * the way of a statement to the store and back is a quarter of what such a page costs. What is narrowed has a statement of its
 * own: nobody knows how long it takes.
 */
import { maxLimit } from "@svc/domain/Paging"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import * as Batcher from "../store/Batcher.ts"
import { type Sql, together } from "../store/Database.ts"
import { textColumns, type TextRow } from "./MessageRows.ts"

/** The newest messages of a Mailbox, of those before a UID where there is one. */
export interface AskedPage {
  readonly identityId: IdentityId
  readonly before: number | undefined
  readonly atMost: number
}

/** Rows of one statement, at most: two of the largest pages. */
const heaviest = { weight: 2 * (maxLimit + 1), of: ({ atMost }: AskedPage) => atMost }

/** The last UID that there can be. */
const lastOfAll = 2 ** 31 - 1

/** Answers how rows are asked for. `one` asks for a page by itself, which costs a fifth less than what joins several. */
export const make = (sql: Sql, one: (page: AskedPage) => Effect.Effect<ReadonlyArray<TextRow>, SqlError.SqlError>) => {
  const columns = textColumns(sql)

  const several = (asked: ReadonlyArray<AskedPage>) =>
    Effect.map(
      // The arrays are hidden from the planner (`select`): it would plan anew for each length, and keep no plan.
      sql<TextRow & { readonly asked: number }>`
        select a.asked::int as asked, m.* from unnest(
          (select ${asked.map(({ identityId }) => identityId)}::uuid[]),
          (select ${asked.map(({ before }) => (before === undefined ? lastOfAll : before - 1))}::int[]),
          (select ${asked.map(({ atMost }) => atMost)}::int[])) with ordinality as a (identity_id, last, at_most, asked)
        cross join lateral (
          select ${columns} from message m
          where m.identity_id = a.identity_id and not m.is_draft and m.uid <= a.last
          order by m.uid desc limit a.at_most) m`,
      (rows) => {
        const pages: ReadonlyArray<Array<TextRow>> = asked.map(() => [])
        for (const row of rows) pages[row.asked - 1]!.push(row)
        // No order is promised of what a join gives; as a rule it is that of its parts, and then this is a look at each.
        for (const page of pages) page.sort((a, b) => b.uid - a.uid)
        return pages
      },
    )

  return together(
    (asked: ReadonlyArray<AskedPage>): Effect.Effect<ReadonlyArray<ReadonlyArray<TextRow>>, SqlError.SqlError> =>
      asked.length === 1 ? Effect.map(one(asked[0]!), (rows) => [rows]) : several(asked),
    { ...Batcher.usual, heaviest },
  )
}

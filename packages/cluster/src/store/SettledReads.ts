/**
 * Reads settled rows: rows that no running transaction can precede. A list waits up to half a second for unsettled rows, so
 * that a caller finds its own changes. Rows that settle later are left out, so that no page skips them.
 */
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { pause } from "./Deadline.ts"
import type { Sql } from "./Database.ts"

const [millis, reads] = [20, 25]

/** Returns the settled rows. `found` reads rows by a condition, with a column `settled`. */
export const settledOf = Effect.fnUntraced(function* <Row extends { readonly settled: boolean }>(
  sql: Sql,
  settled: Statement.Fragment,
  found: (which: Statement.Fragment) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>,
) {
  const all = sql`true`
  let rows = yield* found(all)
  for (let n = 1; n < reads && rows.some((row) => !row.settled); n++) {
    yield* pause(millis)
    rows = yield* found(all)
  }
  return rows.every((row) => row.settled) ? rows : yield* found(settled)
})

/**
 * A list waits for what is about to settle, up to half a second: whoever changed something and then lists finds it,
 * whatever another transaction is doing. What settles later is left out, so that no page skips it.
 */
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { pause } from "./Deadline.ts"
import type { Sql } from "./Database.ts"

const [millis, looks] = [20, 25]

/** `found` reads the rows of a condition and says of each by `settled` whether it has settled. */
export const settledOf = Effect.fnUntraced(function* <Row extends { readonly settled: boolean }>(
  sql: Sql,
  settled: Statement.Fragment,
  found: (which: Statement.Fragment) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>,
) {
  const all = sql`true`
  let rows = yield* found(all)
  for (let n = 1; n < looks && rows.some((row) => !row.settled); n++) {
    yield* pause(millis)
    rows = yield* found(all)
  }
  return rows.every((row) => row.settled) ? rows : yield* found(settled)
})

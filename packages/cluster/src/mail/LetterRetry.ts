/** When a letter of the service that its recipient's server did not accept is tried again. */
import type { Statement } from "effect/sql"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/**
 * Returns the assignments that claim an attempt: they move the next one away, twice as far each time. A letter that is
 * rejected therefore neither reaches the server often nor delays other letters.
 */
export const postponed = (sql: Sql, now: Date): Statement.Fragment => {
  const { first, last, doublings } = Timing.letterRetry
  return sql`
    attempts = attempts + 1,
    next_attempt_at = ${now}::timestamptz
      + least(${last}::interval, ${first}::interval * power(2, least(attempts, ${doublings}::int)))`
}

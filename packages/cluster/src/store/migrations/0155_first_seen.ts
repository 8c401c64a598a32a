import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * What mail programs see of a message besides its marks: whether a session was told of it already (`\Recent`: UIDs from
 * `recent_from` on were told to none), and the zone, in minutes east of UTC, in which a program gave its time.
 */
export const firstSeen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table folder add column if not exists recent_from integer not null default 1`
  yield* sql`alter table message add column if not exists received_zone smallint`
})

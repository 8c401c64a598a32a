/** What was taken of an Org's calls in the running minute. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const callWindows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Unlogged: after a crash of the database the minute begins anew.
  yield* sql`create unlogged table call_window (
    org_id uuid not null references org on delete cascade,
    policy text not null,
    number bigint not null,
    taken integer not null,
    primary key (org_id, policy)
  )`
})

/** Where a very large body is gathered, slice by slice, before it is stored whole. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const messageSlices = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Unlogged: nothing of it was acknowledged, so after a crash of the database it is brought again.
  yield* sql`create unlogged table message_slice (
    message_id uuid not null,
    n integer not null,
    bytes bytea not null,
    created_at timestamptz not null,
    primary key (message_id, n)
  )`
  yield* sql`alter table message_slice alter column bytes set storage external`
})

/** When backups ended well: one row each, of which the youngest are kept. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const backups = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table backup (
    finished_at timestamptz primary key,
    bytes bigint not null,
    rows bigint not null
  )`
})

/** The order in which streams give out Events, and what the re-check of the feed finds new ones by. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const eventOrder = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index on event (org_id, xid, seq)`
  yield* sql`create index on event (xid)`
})

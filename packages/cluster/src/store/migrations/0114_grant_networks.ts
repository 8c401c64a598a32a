import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Where an app may call from, as its holder bound it; null for everywhere. */
export const grantNetworks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table client_grant add column networks text`
})

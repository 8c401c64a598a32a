/** Which browser or program opened a session, so that its holder tells one from another. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const sessionAgents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table session add column user_agent text`
})

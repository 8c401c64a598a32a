import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * What goes out goes with its message, and that with its Identity. A reference to the Identity as well was asked once more at
 * each message that left, and had no index: an Identity that went had everybody's looked at for what might be its own.
 */
export const withoutScans = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table outgoing drop constraint if exists outgoing_identity_id_fkey`
  yield* sql`alter table outbox drop constraint if exists outbox_identity_id_fkey`
})

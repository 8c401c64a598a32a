import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Until when the activation of an actor may begin what leaves the service (`actor/Permit.ts`). A row for each activation:
 * the owner of an entity waits for the permits of the owners before it. No foreign key, since a permit outlives what it
 * was granted for.
 */
export const actorPermits = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table if not exists actor_permit (
    kind text not null,
    id text not null,
    epoch integer not null,
    until timestamptz not null,
    primary key (kind, id, epoch)
  )`
})

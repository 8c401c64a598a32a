/** The epochs of actors of every kind. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const actors = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table actor (
    kind text not null,
    id text not null,
    epoch integer not null,
    primary key (kind, id)
  )`
  // The table before it knew Identities only. It stays until no process of that version can run beside this one.
  yield* sql`insert into actor (kind, id, epoch) select 'Identity', canonical, epoch from identity_actor`
})

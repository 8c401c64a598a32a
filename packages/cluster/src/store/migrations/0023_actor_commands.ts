/** Commands that actors have done, for a day: one that comes again is answered, not done again. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const actorCommands = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table actor_command (
    id uuid not null,
    message text not null,
    done_at timestamptz not null,
    primary key (id, message)
  )`
  yield* sql`create index on actor_command (done_at)`
})

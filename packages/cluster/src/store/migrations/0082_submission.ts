/** What tells a mail program's repeat of a message from a second one: of what came by submission, else null. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const submission = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table outgoing add column submission_key bytea`
  yield* sql`
    create unique index outgoing_submission on outgoing (identity_id, submission_key) where submission_key is not null`
})

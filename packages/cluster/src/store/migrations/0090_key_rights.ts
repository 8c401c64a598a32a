/** What a key may do, until when and from where; the key that took its place; when its holder is told of its end. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const keyRights = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Keys that were made before may do everything, for ever and from everywhere.
  yield* sql`alter table api_key
    add column scopes text not null default '*',
    add column expires_at timestamptz,
    add column networks text,
    add column last_used_address text,
    add column replaced_by uuid,
    -- The next time at which its end is told; null once it was, and where there is none.
    add column end_told_at timestamptz`
  yield* sql`create index on api_key (end_told_at) where end_told_at is not null and revoked_at is null`
  // What a device login asks for its key; null for what the account holder's own choice leaves open.
  yield* sql`alter table device_authorization
    add column scopes text,
    add column expires_in_days int`
})

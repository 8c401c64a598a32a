/**
 * Messages are read in the order of their UIDs, which the commits give out; the order of their ids, minted before, needs
 * no index any more. Where a removed message stood is remembered, so that one can go on behind it.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `create table removed_message (
    id uuid primary key,
    identity_id uuid not null references identity on delete cascade,
    uid integer not null,
    removed_at timestamptz not null
  )`,
  `create index on removed_message (identity_id)`,
  `create index on removed_message (removed_at)`,
  `create index on message (identity_id, tag, uid) where tag is not null`,
  `drop index message_identity_id_id_idx`,
]

export const messageOrder = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})

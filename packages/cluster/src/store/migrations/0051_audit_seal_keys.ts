import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * MACs of the audit log's seals (`audit/Chain`): `key` is the id of the key, null in seals of versions without MACs. The end of
 * a chain repeats the seal of its last record, since that record's month may be dropped; `mac_seq` is the record's number, which
 * differs from `seq` where a former version has sealed since. `refused_at`: the service does not continue the chain, since its
 * end is not what it sealed. Every chain is looked at soon, so that those of former versions are closed.
 */
export const auditSealKeys = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table audit_seal add column if not exists key text, add column if not exists mac bytea`
  yield* sql`alter table audit_head
    add column if not exists previous bytea, add column if not exists key text, add column if not exists mac bytea,
    add column if not exists mac_seq bigint, add column if not exists refused_at timestamptz`
  yield* sql`update audit_head set due_at = coalesce(due_at, now()) where hash is not null`
})

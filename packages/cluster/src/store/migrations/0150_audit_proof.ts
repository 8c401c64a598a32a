import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Who wrote a record of the audit log: a proof that only who has the service's key can make (`audit/Proof`), null in
 * records from before it. `unproven`: it had none, or not its own, when it was sealed, and its hash says so.
 */
export const auditProof = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table audit add column if not exists proof text`
  yield* sql`alter table audit_seal add column if not exists unproven boolean`
})

/** What the start looks for: values of the Vault whose place did not name their secret yet. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const sealedForms = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index vault_version_first_form on vault_version (id) where get_byte(sealed, 0) = 1`
})

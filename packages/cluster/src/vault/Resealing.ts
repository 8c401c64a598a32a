/**
 * Values of the Vault that were sealed when their place did not name their secret yet: a start seals them anew, in
 * batches, so that none of them opens in another secret's place any more.
 */
import { Effect } from "effect"
import { Sealing } from "../sealing/Sealing.ts"
import { Unhurried } from "../store/Database.ts"
import { place } from "./Namespace.ts"

const batch = 100

interface Row {
  readonly id: string
  readonly sealed: Uint8Array
  readonly secret_id: string
  readonly name: string
  readonly org_id: string
  readonly identity_id: string | null
  readonly data_key: Uint8Array
}

export const reseal = Effect.gen(function* () {
  const sql = yield* Unhurried
  const sealing = yield* Sealing
  let behind = "00000000-0000-0000-0000-000000000000"
  while (true) {
    const rows = yield* sql<Row>`
      select v.id, v.sealed, s.id as secret_id, s.name, s.org_id, s.identity_id, o.data_key
      from vault_version v join vault_secret s on s.id = v.secret_id join org o on o.id = s.org_id
      where get_byte(v.sealed, 0) = 1 and v.id > ${behind}::uuid order by v.id limit ${batch}`
    if (rows.length === 0) return
    for (const row of rows) {
      const at = place({ org: row.org_id, identity: row.identity_id }, row.secret_id, row.name, row.id)
      yield* Effect.gen(function* () {
        const dataKey = yield* sealing.openDataKey(row.org_id, row.data_key)
        const sealed = yield* sealing.seal(dataKey, at, yield* sealing.open(dataKey, at, row.sealed))
        yield* sql`update vault_version set sealed = ${sealed} where id = ${row.id} and secret_id = ${row.secret_id}`
      }).pipe(
        // It was altered, or belongs elsewhere: it stays what it is, and is told.
        Effect.catchTag("CannotOpen", (error) => Effect.logError(error.message, { version: row.id })),
      )
    }
    behind = rows.at(-1)!.id
  }
})

/** The Org in its actor's memory. */
import { Effect } from "effect"
import { type DataKey, Sealing } from "../sealing/Sealing.ts"
import { Reads } from "../store/Database.ts"

export interface OwnedOrg {
  readonly id: string
  readonly status: "active" | "deleting"
  readonly dataKey: DataKey
}

/** Undefined once the Org is deleted. */
export type OrgState = OwnedOrg | undefined

export const load = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  return Effect.fnUntraced(function* (id: string) {
    const [row] = yield* sql<{ status: OwnedOrg["status"]; data_key: Uint8Array }>`
      select status, data_key from org where id = ${id}`
    if (row === undefined) return undefined
    const org: OwnedOrg = {
      id,
      status: row.status,
      dataKey: yield* Effect.orDie(sealing.openDataKey(id, row.data_key)),
    }
    return org
  })
})

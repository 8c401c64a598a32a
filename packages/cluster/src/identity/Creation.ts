/** An Identity's first commit: the Org's quota, the permanent Handle, the Identity with a saga that has just begun. */
import { AccountDeleting, HandleTaken, IdentityQuotaExhausted } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Fenced } from "../actor/Write.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import type { CreationBatch } from "./CreationBatch.ts"
import * as Saga from "./Saga.ts"
import { type Owned, sagaJson, withRunning } from "./State.ts"

export interface NewIdentity {
  readonly canonical: string
  readonly handle: string
  readonly orgId: string
  readonly id: string
}

const refusal = new HandleTaken({ detail: "The Handle, or a spelling of it, is held or was held." })
export const taken = Effect.fail(refusal)

export const create = Effect.fnUntraced(function* (
  fenced: Fenced,
  wanted: NewIdentity,
  /** Identities an Org may ever create. */
  quota: number,
  sealing: Sealing["Service"],
  creations: CreationBatch["Service"],
) {
  const saga = Saga.start("provisioning", fenced.at)
  const born = withRunning(wanted, saga, "provisioning", fenced.at)
  const row = yield* creations.make({ fenced, ...wanted, quota, saga: sagaJson(saga), sagaDueAt: born.sagaDueAt }).pipe(
    // The name's unique constraint undoes the whole statement, the quota's count included.
    Effect.catchIf(
      (error) => error._tag === "SqlError" && error.reason._tag === "UniqueViolation",
      () => taken,
    ),
  )
  if (row.status !== "active" || row.data_key === null) {
    return yield* new AccountDeleting({ detail: "The account is being deleted." })
  }
  if (!row.made) {
    return yield* new IdentityQuotaExhausted({ detail: `The Org has created its ${quota} Identities.` })
  }
  const state: Owned = { ...born, dataKey: yield* Effect.orDie(sealing.openDataKey(wanted.orgId, row.data_key)) }
  return { value: undefined, state }
})

/** An Identity's first commit: the Org's quota, the name for ever, the Identity with a saga that has just begun. */
import { AccountDeleting, HandleTaken, IdentityQuotaExhausted } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { commit, type Fenced } from "../actor/Write.ts"
import type { Sealing } from "../sealing/Sealing.ts"
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
) {
  const { sql, at } = fenced
  const saga = Saga.start("provisioning", at)
  const born = withRunning(wanted, saga, "provisioning", at)
  const row = yield* commit<{ made: boolean; status: string | null; data_key: Uint8Array | null }>(
    fenced,
    sql`
      spent as (
        update org set identities_created = identities_created + 1
        where id = ${wanted.orgId}::uuid and status = 'active' and identities_created < ${quota} and exists (select from fence)
        returning id
      ),
      name as (
        insert into handle (canonical, handle, org_id, registered_at)
        select ${wanted.canonical}::text, ${wanted.handle}::text, id, ${at}::timestamptz from spent
        returning canonical
      ),
      made as (
        insert into identity (id, canonical, handle, org_id, status, saga, saga_due_at, created_at)
        select ${wanted.id}::uuid, canonical, ${wanted.handle}::text, ${wanted.orgId}::uuid, 'provisioning',
               ${sagaJson(saga)}::jsonb, ${born.sagaDueAt}::timestamptz, ${at}::timestamptz
        from name
        returning id
      ),
      owner as (select status, data_key from org where id = ${wanted.orgId}::uuid)`,
    {
      columns: sql`exists (select from made) as made, (select status from owner) as status, (select data_key from owner) as data_key`,
    },
  ).pipe(
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

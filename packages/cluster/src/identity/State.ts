/** The Identity in its actor's memory. */
import { type Identity, Saga } from "@svc/domain/identity/Identity"
import { Clock, Effect, Schema } from "effect"
import type { OwnIdentity } from "../actor/Write.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

export interface Owned extends OwnIdentity {
  readonly status: Identity["status"]
  readonly saga: Saga
  /** The time from which another process resumes the saga; null once it has ended. */
  readonly sagaDueAt: Date | null
}

/** Undefined if the actor's Identity does not exist. */
export type State = Owned | undefined

const Row = Schema.Struct({
  id: Schema.String,
  handle: Schema.String,
  org_id: Schema.String,
  status: Schema.Literals(["provisioning", "ready", "failed", "deleting"]),
  saga: Saga,
  saga_due_at: Schema.NullOr(Schema.Date),
  data_key: Schema.Uint8Array,
})
const decode = Schema.decodeUnknownEffect(Row)
const encodeSaga = Schema.encodeSync(Saga)
export const sagaJson = (saga: Saga) => JSON.stringify(encodeSaga(saga))

/** Claims the Identity of a canonical Handle and reads it (`claimed_identity` in `store/schema/identity.ts`). */
export const claim = Effect.gen(function* () {
  const sql = yield* Writes
  const sealing = yield* Sealing
  return Effect.fnUntraced(function* (canonical: string) {
    const [found] = yield* sql<{ claimed: number; id: string | null }>`
      select claimed, id, handle, org_id, status, saga, saga_due_at, data_key from claimed_identity(${canonical})`
    const epoch = found!.claimed
    if (found!.id === null) return { epoch, state: undefined }
    const row = yield* Effect.orDie(decode(found))
    const state: Owned = {
      id: row.id,
      handle: row.handle,
      orgId: row.org_id,
      status: row.status,
      saga: row.saga,
      sagaDueAt: row.saga_due_at,
      dataKey: yield* Effect.orDie(sealing.openDataKey(row.org_id, row.data_key)),
    }
    return { epoch, state }
  })
})

/** Returns how long the saga's step waits after a failed attempt, in milliseconds. A running step is always due. */
export const sagaWait = (identity: Owned) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const retrying = identity.saga.steps.some((step) => step.status === "retrying")
    return retrying && identity.sagaDueAt !== null ? identity.sagaDueAt.getTime() - now : 0
  })

/** Returns the Identity with a started or resumed saga. */
export const withRunning = <I>(identity: I, saga: Saga, status: Owned["status"], at: Date) => ({
  ...identity,
  saga,
  status,
  sagaDueAt: new Date(at.getTime() + Timing.sagaLeaseMillis),
})

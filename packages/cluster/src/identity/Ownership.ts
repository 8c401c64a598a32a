/**
 * What an Identity actor knows of its row, and the proof that it still may write it.
 *
 * Activation raises the row's `epoch`; every write is one statement that names the epoch it was loaded under (CTE
 * `fence`). When another process has activated the same Identity meanwhile, the fence finds no row, the statement
 * changes nothing, and the caller is told {@link Moved}, so that it asks the present owner. A frozen process that
 * wakes up after its shards moved can therefore do no harm.
 */
import { Saga, type Identity } from "@svc/domain/identity/Identity"
import { Moved } from "@svc/domain/actor/Moved"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Clock, Duration, Effect, Schema, Semaphore } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { orUnavailable, Reads, type Sql, Writes } from "../store/Database.ts"
import { type DataKey, Sealing } from "../sealing/Sealing.ts"
import { Timing } from "../Timing.ts"

/** The Identity as its actor keeps it in memory. */
export interface Owned {
  readonly id: string
  readonly handle: string
  readonly orgId: string
  readonly status: Identity["status"]
  readonly saga: Saga
  readonly sagaDueAt: Date | null
  readonly dataKey: DataKey
}

/** What one activation holds; `identity` is undefined while no Identity of this name exists. */
export interface Activation {
  readonly epoch: number
  readonly identity: Owned | undefined
}

const Row = Schema.Struct({
  id: Schema.String,
  handle: Schema.String,
  org_id: Schema.String,
  status: Schema.Literals(["provisioning", "ready", "failed", "deleting"]),
  saga: Saga,
  saga_due_at: Schema.NullOr(Schema.Date),
  data_key: Schema.Uint8Array,
})
const decodeRows = Schema.decodeUnknownEffect(Schema.Array(Row))
export const encodeSaga = Schema.encodeSync(Saga)
export const sagaJson = (saga: Saga) => JSON.stringify(encodeSaga(saga))

export interface Ownership {
  /** The loaded state; the first use after an activation or a doubt reads the store. */
  readonly state: Effect.Effect<Activation, Moved | Unavailable>
  /**
   * Runs a write on the loaded state. `commit` answers what the new state is; a fence that was lost
   * (`undefined`) or a commit whose outcome is unknown drops what is in memory.
   */
  readonly write: <A, E>(
    commit: (activation: Activation, fence: Statement.Fragment) => Effect.Effect<Written<A> | undefined, E>,
  ) => Effect.Effect<A, Exclude<E, SqlError.SqlError> | Moved | Unavailable>
  /** Forgets what is in memory; the next use loads it again. */
  readonly forget: Effect.Effect<void>
}

export interface Written<A> {
  readonly value: A
  /** The state after the commit, where it differs from before. */
  readonly identity?: Owned | undefined
  /** Set when the Identity is gone. */
  readonly removed?: boolean
}

/** The outcome of a statement that selects whether the fence held. */
export const committed = <A>(row: { readonly owned: boolean } | undefined, value: A): Written<A> | undefined =>
  row?.owned === true ? { value } : undefined

/** The CTE that lets a statement write only under the epoch it was loaded with. */
const fenceOf = (sql: Sql, canonical: string, epoch: number): Statement.Fragment =>
  sql`fence as (select 1 from identity_actor where canonical = ${canonical} and epoch = ${epoch} for share)`

export const make = Effect.fnUntraced(function* (canonical: string) {
  const writes = yield* Writes
  const reads = yield* Reads
  const sealing = yield* Sealing
  const feed = yield* ChangeFeed
  let activation: Activation | undefined
  let lostAt: number | undefined
  const loading = yield* Semaphore.make(1)

  const load = Effect.gen(function* () {
    // After a lost fence nothing is taken until our lock on the shard must have been confirmed or lost.
    if (lostAt !== undefined) {
      const since = (yield* Clock.currentTimeMillis) - lostAt
      if (since < Duration.toMillis(Timing.shardLockExpiration)) return yield* new Moved()
    }
    const [actor] = yield* writes<{ epoch: number }>`
      insert into identity_actor (canonical, epoch) values (${canonical}, 1)
      on conflict (canonical) do update set epoch = identity_actor.epoch + 1
      returning epoch`
    // A statement of its own: one that waited for a former owner's commit must see that commit.
    const rows = yield* reads`
      select i.id, i.handle, i.org_id, i.status, i.saga, i.saga_due_at, o.data_key
      from identity i join org o on o.id = i.org_id where i.canonical = ${canonical}`
    const [row] = yield* Effect.orDie(decodeRows(rows))
    lostAt = undefined
    activation = { epoch: actor!.epoch, identity: row === undefined ? undefined : yield* owned(row) }
    return activation
  })

  const owned = (row: typeof Row.Type): Effect.Effect<Owned> =>
    Effect.map(Effect.orDie(sealing.openDataKey(row.org_id, row.data_key)), (dataKey) => ({
      id: row.id,
      handle: row.handle,
      orgId: row.org_id,
      status: row.status,
      saga: row.saga,
      sagaDueAt: row.saga_due_at,
      dataKey,
    }))

  const state = Effect.suspend(() =>
    activation !== undefined
      ? Effect.succeed(activation)
      : loading.withPermits(1)(Effect.suspend(() => (activation !== undefined ? Effect.succeed(activation) : load))),
  ).pipe(orUnavailable)

  const forget = Effect.sync(() => {
    activation = undefined
  })

  const write: Ownership["write"] = (commit) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        const before = yield* state
        const written = yield* commit(before, fenceOf(writes, canonical, before.epoch)).pipe(
          // Refused, or unknown whether it happened: what is in memory is no longer certain.
          Effect.tapCause(() => forget),
          orUnavailable,
        )
        if (written === undefined) {
          yield* forget
          lostAt = yield* Clock.currentTimeMillis
          return yield* new Moved()
        }
        // Concurrent writes (delivery records) leave the identity as it is; only the serial ones replace it.
        if (activation !== undefined && activation.epoch === before.epoch) {
          if (written.removed === true) activation = { epoch: before.epoch, identity: undefined }
          else if (written.identity !== undefined) activation = { epoch: before.epoch, identity: written.identity }
        }
        const told = written.identity ?? before.identity
        if (told !== undefined) feed.announce({ org: told.orgId, identity: told.id })
        return written.value
      }),
    )

  return { state, write, forget } satisfies Ownership
})

/**
 * The state of an actor's entity in memory, and the proof that the actor may still write it.
 *
 * Activation raises the entity's `epoch`. Every write is one statement that names the epoch under which the state was
 * loaded (CTE `fence`). If another process has activated the same entity since, the fence has no row, the statement
 * changes nothing, and the caller gets {@link Moved} and calls the new owner. A process that was frozen while its
 * shards moved can therefore do no harm.
 */
import type { Initiator } from "@svc/domain/account/Initiator"
import { Moved } from "@svc/domain/actor/Protocol"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Cause, Clock, Deferred, Duration, Effect, Exit, Predicate, Semaphore } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { orUnavailable, type Sql, Writes } from "../store/Database.ts"
import * as Metrics from "../observe/Metrics.ts"
import { Timing } from "../Timing.ts"
import type { Claim, Fenced, FenceLost } from "./Write.ts"

/**
 * How the state is loaded: by a statement after the claim, or by one that also makes the claim. The state must be read
 * after the claim has waited for a former owner's write; a single SQL statement would not see that write.
 */
type Loading<State> =
  | Effect.Effect<State, SqlError.SqlError>
  | { readonly claimed: Effect.Effect<{ readonly epoch: number; readonly state: State }, SqlError.SqlError> }

interface Entity<State> {
  /** The entity type's name in the cluster. */
  readonly kind: string
  readonly id: string
  /** Loads the state; `undefined` if the entity does not exist. */
  readonly load: Loading<State>
  /** Called after a write that queued work which is due. */
  readonly due?: Fenced["due"]
  /** Called after each commit with the state before and after it. */
  readonly committed?: (before: State, after: State) => void
}

type Outcome<E> = Exclude<E, SqlError.SqlError | FenceLost> | Moved | Unavailable

export interface Ownership<State> {
  /** The loaded state. The first use after an activation or a write with unknown outcome reads the store. */
  readonly state: Effect.Effect<State, Moved | Unavailable>
  /** The state after all pending changes. Others may read a commit in the store before the actor's memory has it. */
  readonly settled: Effect.Effect<State, Moved | Unavailable>
  /** Runs a write that does not change the state. */
  readonly write: <A, E>(
    by: Initiator,
    run: (write: Fenced, state: State) => Effect.Effect<A, E>,
  ) => Effect.Effect<A, Outcome<E>>
  /** Runs a write that changes the state; `state` is left out if it did not change after all. */
  readonly change: <A, E>(
    by: Initiator,
    run: (write: Fenced, state: State) => Effect.Effect<Changed<A, State>, E>,
  ) => Effect.Effect<A, Outcome<E>>
}

export interface Changed<A, State> {
  readonly value: A
  readonly state?: State
}

interface Activation<State> {
  readonly epoch: number
  readonly state: State
  readonly memory: Map<string, unknown>
}

const writes = Metrics.counter(
  "svc_actor_writes_total",
  "Writes of actors: done, refused, by a stale owner (fence_lost), or of an outcome that is not known (doubt)",
  ["kind", "outcome"],
  ["Identity", "Org"].flatMap((kind) =>
    ["done", "refused", "fence_lost", "doubt"].map((outcome) => [kind, outcome] as const),
  ),
)

const fenceOf = (sql: Sql, { kind, id, epoch }: Claim): Statement.Fragment =>
  sql`fence as (select 1 from actor where kind = ${kind} and id = ${id} and epoch = ${epoch} for share)`

const claimed = Effect.fnUntraced(function* <State>(sql: Sql, { kind, id, load }: Entity<State>) {
  if (!Effect.isEffect(load)) return yield* load.claimed
  const [actor] = yield* sql<{ epoch: number }>`
    insert into actor (kind, id, epoch) values (${kind}, ${id}, 1)
    on conflict (kind, id) do update set epoch = actor.epoch + 1
    returning epoch`
  return { epoch: actor!.epoch, state: yield* load }
})

export const make = Effect.fnUntraced(function* <State>(entity: Entity<State>) {
  const sql = yield* Writes
  const due = entity.due ?? (() => {})
  let activation: Activation<State> | undefined
  let lostAt: number | undefined
  const changing = new Set<Deferred.Deferred<void>>()
  const loading = yield* Semaphore.make(1)

  const load = Effect.gen(function* () {
    // After a lost fence, rejects everything until the lock on the shard must have been confirmed or lost.
    if (lostAt !== undefined) {
      const since = (yield* monotonicMillis) - lostAt
      if (since < Duration.toMillis(Timing.shardLockExpiration)) return yield* new Moved()
    }
    activation = { ...(yield* claimed(sql, entity)), memory: new Map() }
    return activation
  })

  const loadedOnce = loading
    .withPermits(1)(Effect.suspend(() => (activation !== undefined ? Effect.succeed(activation) : load)))
    .pipe(orUnavailable)

  /** State in memory needs no deadline, which would cost a fiber. */
  const loaded = Effect.suspend(() => (activation !== undefined ? Effect.succeed(activation) : loadedOnce))

  /** Runs the statement under the loaded epoch. If the outcome is unknown, drops the state in memory. */
  const run = <A, E>(
    by: Initiator,
    before: Activation<State>,
    statement: (write: Fenced, state: State) => Effect.Effect<A, E>,
  ): Effect.Effect<A, Outcome<E>> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const claim = { kind: entity.kind, id: entity.id, epoch: before.epoch }
      const { memory, state } = before
      return statement({ sql, claim, fence: fenceOf(sql, claim), at: new Date(now), by, due, memory }, state)
    }).pipe(
      orUnavailable,
      Effect.onExit((exit) =>
        Effect.sync(() => {
          writes.of(entity.kind, outcomeOf(exit)).n++
          if (leavesDoubt(exit)) forget(before)
        }),
      ),
      Effect.catchIf(isFenceLost, () =>
        Effect.flatMap(monotonicMillis, (now) => {
          lostAt = now
          return Effect.fail(new Moved())
        }),
      ),
    ) as Effect.Effect<A, Outcome<E>>

  const forget = (before: Activation<State>) => {
    if (activation?.epoch === before.epoch) activation = undefined
  }

  const write: Ownership<State>["write"] = (by, statement) =>
    Effect.uninterruptible(
      Effect.flatMap(loaded, (before) =>
        Effect.tap(run(by, before, statement), () => Effect.sync(() => entity.committed?.(before.state, before.state))),
      ),
    )

  const change: Ownership<State>["change"] = (by, statement) =>
    Effect.uninterruptible(
      Effect.flatMap(loaded, (before) =>
        underWay(
          Effect.map(run(by, before, statement), (changed) => {
            // Writes that do not change the state may run concurrently; only a later activation can have replaced it.
            if ("state" in changed && activation?.epoch === before.epoch) {
              activation = { ...before, state: changed.state as State }
            }
            entity.committed?.(before.state, "state" in changed ? (changed.state as State) : before.state)
            return changed.value
          }),
        ),
      ),
    )

  const underWay = <A, E>(work: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      const ended = Deferred.makeUnsafe<void>()
      changing.add(ended)
      return Effect.ensuring(
        work,
        Effect.sync(() => {
          changing.delete(ended)
          Deferred.doneUnsafe(ended, Effect.void)
        }),
      )
    })

  const state = Effect.map(loaded, ({ state }) => state)
  const settled = Effect.suspend(() =>
    Effect.andThen(
      Effect.forEach([...changing], (ended) => Deferred.await(ended), { discard: true }),
      state,
    ),
  )
  return { state, settled, write, change } satisfies Ownership<State>
})

const isFenceLost = (error: unknown): error is FenceLost => Predicate.isTagged(error, "FenceLost")

/**
 * Returns whether the outcome is unknown: after a lost fence, an unreachable store, a defect or an interruption. A
 * rejection is a known outcome.
 */
const leavesDoubt = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) &&
  !exit.cause.reasons.every(
    (reason) =>
      Cause.isFailReason(reason) && !isFenceLost(reason.error) && !Predicate.isTagged(reason.error, "unavailable"),
  )

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): "done" | "refused" | "fence_lost" | "doubt" => {
  if (Exit.isSuccess(exit)) return "done"
  if (exit.cause.reasons.some((reason) => Cause.isFailReason(reason) && isFenceLost(reason.error))) return "fence_lost"
  return leavesDoubt(exit) ? "doubt" : "refused"
}

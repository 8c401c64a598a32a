/**
 * What an actor knows of its entity, and the proof that it still may write it.
 *
 * Activation raises the entity's `epoch`; every write is one statement that names the epoch it was loaded under (CTE
 * `fence`). When another process has activated the same entity meanwhile, the fence finds no row, the statement changes
 * nothing, and the caller is told {@link Moved}, so that it asks the present owner. A frozen process that wakes up after
 * its shards moved can therefore do no harm.
 */
import type { Initiator } from "@svc/domain/account/Initiator"
import { Moved } from "@svc/domain/actor/Moved"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Cause, Clock, Deferred, Duration, Effect, Exit, Semaphore } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { orUnavailable, type Sql, Writes } from "../store/Database.ts"
import * as Metrics from "../observe/Metrics.ts"
import { Timing } from "../Timing.ts"
import type { Claim, Fenced, FenceLost } from "./Write.ts"

/**
 * How the store is read: after the claim, in a statement of its own, or in one that also makes the claim. What is read must
 * have been committed after the claim had waited for a former owner's write, which one statement does not see by itself.
 */
export type Loading<State> =
  | Effect.Effect<State, SqlError.SqlError>
  | { readonly claimed: Effect.Effect<{ readonly epoch: number; readonly state: State }, SqlError.SqlError> }

export interface Entity<State> {
  /** The entity type, as the cluster names it. */
  readonly kind: string
  readonly id: string
  /** What the actor keeps in memory; `undefined` in it where the store has no such entity. */
  readonly load: Loading<State>
  /** A write queued work that is due. */
  readonly due?: () => void
  /** Runs after each commit, with the state before it and after it. */
  readonly committed?: (before: State, after: State) => void
}

type Outcome<E> = Exclude<E, SqlError.SqlError | FenceLost> | Moved | Unavailable

export interface Ownership<State> {
  /** The loaded state; the first use after an activation or a doubt reads the store. */
  readonly state: Effect.Effect<State, Moved | Unavailable>
  /**
   * The state after the changes that are under way: others may see in the store what such a one has committed, before the
   * actor has heard of it.
   */
  readonly settled: Effect.Effect<State, Moved | Unavailable>
  /** Runs a write that leaves the state as it is. */
  readonly write: <A, E>(
    by: Initiator,
    run: (write: Fenced, state: State) => Effect.Effect<A, E>,
  ) => Effect.Effect<A, Outcome<E>>
  /** Runs a write that makes another state of it; `state` is left out where nothing changed after all. */
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
    // After a lost fence nothing is taken until our lock on the shard must have been confirmed or lost.
    if (lostAt !== undefined) {
      const since = (yield* monotonicMillis) - lostAt
      if (since < Duration.toMillis(Timing.shardLockExpiration)) return yield* new Moved()
    }
    activation = { ...(yield* claimed(sql, entity)), memory: new Map() }
    lostAt = undefined
    return activation
  })

  const loadedOnce = loading
    .withPermits(1)(Effect.suspend(() => (activation !== undefined ? Effect.succeed(activation) : load)))
    .pipe(orUnavailable)

  /** What is in memory waits for nobody, so it has no deadline, which costs a fiber. */
  const loaded = Effect.suspend(() => (activation !== undefined ? Effect.succeed(activation) : loadedOnce))

  /** Runs the statement under the loaded epoch; after an outcome that is not known, nothing in memory is believed. */
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
            // Writes that leave the state alone run beside this one; only a later activation may have replaced it.
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

const hasTag = (error: unknown, tag: string) =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === tag
const isFenceLost = (error: unknown): error is FenceLost => hasTag(error, "FenceLost")

/** A refusal is an outcome; a lost fence, a store out of reach, a defect or an interruption may have left anything. */
const leavesDoubt = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) &&
  !exit.cause.reasons.every(
    (reason) => Cause.isFailReason(reason) && !isFenceLost(reason.error) && !hasTag(reason.error, "unavailable"),
  )

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): "done" | "refused" | "fence_lost" | "doubt" => {
  if (Exit.isSuccess(exit)) return "done"
  if (exit.cause.reasons.some((reason) => Cause.isFailReason(reason) && isFenceLost(reason.error))) return "fence_lost"
  return leavesDoubt(exit) ? "doubt" : "refused"
}

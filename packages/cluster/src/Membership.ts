/**
 * Cluster membership that follows the sessions of PostgreSQL, so that shards move within moments of a crash.
 *
 * The library counts a runner as alive until its heartbeat is `shardLockExpiration` old, looks for changes of the
 * runners at a fixed interval, and sleeps a whole second after each attempt to acquire shards. PostgreSQL releases the
 * advisory locks of a session when its connection ends, so a killed process has already lost its shards by then. Here:
 *
 * - A runner holds one more advisory lock in the session of its shard locks. A runner without that lock is not a
 *   member. Membership and shard locks therefore end together, with the session.
 * - A process that registers or leaves announces it over the change feed, and every other process reads the runners
 *   again. A crash is found by a query every `refreshAssignments`.
 * - Connections to a runner that is no longer a member are closed. A frozen process keeps them open, and its callers
 *   would otherwise wait until their own deadline.
 * - While a shard that belongs to this runner is still locked by its previous owner, the runner tries again every
 *   `shardAcquire`.
 * - A slow confirmation of the shard locks is not treated as a loss. The library gives up all shards of a runner if one takes longer
 *   than a third of `shardLockExpiration`, which happens on a busy machine. The locks end with their session only, and a
 *   session with a statement in flight is not idle. Here the runner keeps its shards for `shardLockExpiration` after the
 *   start of the last successful confirmation.
 * - The limit of the library for such a confirmation does not count time in which this process was stalled, because it
 *   would otherwise end a confirmation whose result had already arrived.
 * - Shards that move at the same time are released in one statement. The library takes two statements for each, one shard
 *   after the other, while callers wait for the last one.
 *
 * Fencing does not depend on any of this: an actor writes only under its own epoch (`actor/Ownership.ts`).
 *
 * The library has no option for the sleeps that three of these points replace. {@link clock} recognizes these sleeps by the
 * log annotation of their loop, if it has one, and by their duration; `test/cluster/membership-clock.test.ts` fails if the
 * library changes either. No other duration in these loops may be equal.
 */
import { Cause, Clock, Context, Duration, Effect, Fiber, Layer, Option, References, type Scope } from "effect"
import {
  ClusterError,
  Runner,
  type RunnerAddress,
  RunnerStorage,
  type ShardId,
  ShardingConfig,
  SqlRunnerStorage,
} from "effect/cluster"
import { SqlClient, type SqlConnection } from "effect/sql"
import { ChangeFeed } from "./feed/ChangeFeed.ts"
import * as Batcher from "./store/Batcher.ts"
import { ClusterSql } from "./store/Database.ts"
import { Timing } from "./Timing.ts"

/** The first half of the advisory locks of runners: "runr" in ASCII. The second half is the runner's machine id. */
const runnerLock = 0x72756e72

/** The kind of key that the change feed carries when a runner registers or leaves. */
const feedKind = "runners"

/** The connections of this process to runners. A connection is closed when its runner is no longer a member. */
export class RunnerConnections extends Context.Service<
  RunnerConnections,
  {
    /** Returns a signal that closes a connection to the runner at `host:port`. */
    readonly open: (address: string) => Effect.Effect<AbortSignal, never, Scope.Scope>
    /** Closes the connections to all other runners. */
    readonly retain: (addresses: ReadonlySet<string>) => void
  }
>()("@svc/cluster/RunnerConnections") {
  static readonly layer = Layer.sync(RunnerConnections, () => {
    const open = new Map<AbortController, string>()
    return {
      open: (address) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const controller = new AbortController()
            open.set(controller, address)
            return controller
          }),
          (controller) => Effect.sync(() => open.delete(controller)),
        ).pipe(Effect.map(({ signal }) => signal)),
      retain: (addresses) => {
        for (const [controller, address] of open) if (!addresses.has(address)) controller.abort()
      },
    }
  })
}

const makeStorage = Effect.gen(function* () {
  const sql = yield* ClusterSql
  const feed = yield* ChangeFeed
  const connections = yield* RunnerConnections
  const config = yield* ShardingConfig.ShardingConfig
  const { runnerAddress, shardLockExpiration } = config
  const expirationMillis = Duration.toMillis(Duration.fromInputUnsafe(shardLockExpiration))
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const self = Option.match(runnerAddress, { onNone: () => "", onSome: ({ host, port }) => `${host}:${port}` })

  let session: SqlConnection.Connection | undefined
  let expiring: SqlConnection.Connection | undefined
  let machineId: number | undefined

  /** Takes this runner's lock, in shared mode: the session of a predecessor at the same address may still hold it. */
  const hold = Effect.suspend(() =>
    session === undefined || machineId === undefined
      ? Effect.void
      : Effect.asVoid(session.executeRaw(`select pg_try_advisory_lock_shared(${runnerLock}, ${machineId})`, [])),
  )
  const keepAlive = Effect.suspend(() =>
    session === undefined
      ? Effect.void
      : Effect.timeoutOption(session.executeRaw("select 1", []), Timing.shardLockRefresh),
  ).pipe(Effect.ignore)
  // The library reserves a connection for its shard locks, and a new one when that connection fails.
  const reserve = Effect.tap(sql.reserve, (reserved) => {
    session = reserved
    return hold
  })
  const observed = new Proxy(sql, { get: (client, key) => (key === "reserve" ? reserve : Reflect.get(client, key)) })
  // The storage replaces the session of a statement that takes longer than a third of its own expiration.
  const patient = {
    ...config,
    shardLockExpiration: expirationMillis * 3,
    shardLockRefreshInterval: expirationMillis,
  }
  const library = yield* SqlRunnerStorage.make({}).pipe(
    Effect.provideService(SqlClient.SqlClient, observed),
    Effect.provideService(ShardingConfig.ShardingConfig, patient),
    Effect.orDie,
  )
  /** Replaces a session that has ended: the library does so when one of its statements fails, and the next one waits for it. */
  const renew = (address: RunnerAddress.RunnerAddress) =>
    Effect.ignore(library.releaseAll(address)).pipe(Effect.andThen(library.releaseAll(address)), Effect.andThen(hold))
  /** Logs the first of several failures: the library tries again at short intervals and logs none of them. */
  let isFailing = false
  const registering = <A, E>(register: Effect.Effect<A, E>) =>
    register.pipe(
      Effect.tapCause((cause) => {
        if (isFailing || Cause.hasInterruptsOnly(cause)) return Effect.void
        isFailing = true
        return Effect.logWarning("This process cannot join the cluster, and tries again", cause)
      }),
      Effect.tap(() => Effect.sync(() => (isFailing = false))),
    )
  const announce = Effect.sync(() => feed.notify(`${feedKind}/all`))

  /** Ends a new session after `shardLockExpiration` without a statement, in place of the longer time that the storage has set. */
  const expire = Effect.suspend(() => {
    const opened = session
    if (opened === undefined || opened === expiring) return Effect.void
    return Effect.map(
      opened.executeRaw(`select set_config('idle_session_timeout', '${Math.ceil(expirationMillis)}', false)`, []),
      () => {
        expiring = opened
      },
    )
  }).pipe(ClusterError.PersistenceError.refail)

  /**
   * Releases shards of this runner. The second key of a shard's lock ends with the number of the shard. The session may have
   * taken a lock several times, and its only other lock, {@link runnerLock}, is shared.
   */
  const unlock = Effect.fnUntraced(function* (shards: ReadonlyArray<ShardId.ShardId>) {
    const statement = `
      select pg_advisory_unlock(classid::int8::bit(32)::int4, objid::int4) from pg_locks
      where locktype = 'advisory' and objsubid = 2 and pid = pg_backend_pid()
        and mode = 'ExclusiveLock' and objid::int8 % 1000000 in (${shards.map(({ id }) => id).join()})`
    while (session !== undefined && (yield* session.executeValues(statement, [])).length > 0);
    return shards
  })
  const unlocked = yield* Batcher.make(unlock, { atOnce: 1, most: config.shardsPerGroup })

  type Confirmation = Fiber.Fiber<Array<ShardId.ShardId>, ClusterError.PersistenceError>
  let running: { readonly shards: ReadonlySet<string>; readonly fiber: Confirmation } | undefined
  /** When the last statement started that found or took locks of shards, in milliseconds. */
  let confirmed = -Infinity
  const confirming = <A extends ReadonlyArray<unknown>, E>(statement: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      const started = clock.currentTimeMillisUnsafe()
      return Effect.tap(statement, (shards) =>
        Effect.sync(() => {
          if (shards.length > 0) confirmed = started
        }),
      )
    })

  /** Returns which of the shards the session still locks, or all of them while the confirmation is late. */
  const confirm = Effect.fnUntraced(function* (
    address: RunnerAddress.RunnerAddress,
    held: ReadonlyArray<ShardId.ShardId>,
  ) {
    if (running === undefined) {
      const confirmation = confirming(library.refresh(address, held)).pipe(
        Effect.tap(() => expire),
        Effect.ensuring(Effect.sync(() => (running = undefined))),
      )
      running = { shards: new Set(held.map(String)), fiber: yield* Effect.forkIn(confirmation, scope) }
    }
    const { shards, fiber } = running
    const locked = yield* Effect.timeoutOption(Fiber.join(fiber), Timing.shardLockPatience)
    // Shards that are not part of the confirmation were acquired after its start.
    if (Option.isSome(locked)) return [...locked.value, ...held.filter((shard) => !shards.has(String(shard)))]
    return clock.currentTimeMillisUnsafe() - confirmed < expirationMillis ? [...held] : yield* Fiber.join(fiber)
  })

  return RunnerStorage.RunnerStorage.of({
    ...library,
    register: (runner, healthy) =>
      Effect.tap(library.register(runner, healthy), (id) => {
        machineId = id
        // PostgreSQL has ended the session if the start took longer than its idle timeout.
        return Effect.catch(hold, () => renew(runner.address))
      }).pipe(
        ClusterError.PersistenceError.refail,
        registering,
        Effect.tap(() => announce),
      ),
    unregister: (address) => {
      machineId = undefined
      return Effect.tap(library.unregister(address), () => announce)
    },
    /** Returns the runners that hold their lock. This runner counts itself: the library would register it again and again. */
    getRunners: sql<{ address: string; runner: string; healthy: boolean }>`
      select address, runner, healthy from cluster_runners where address = ${self} or machine_id in (
        select objid::int8 from pg_locks
        where locktype = 'advisory' and classid::int8 = ${runnerLock} and objsubid = 2 and granted
          and database = (select oid from pg_database where datname = current_database())
      )`.pipe(
      Effect.map((rows) => {
        connections.retain(new Set(rows.map(({ address }) => address)))
        return rows.map(({ runner, healthy }) => [Runner.Runner.decodeSync(runner), healthy] as const)
      }),
      ClusterError.PersistenceError.refail,
      Effect.withTracerEnabled(false),
    ),
    acquire: (address, shards) => Effect.tap(confirming(library.acquire(address, shards)), () => expire),
    // The library leaves the session of a runner without shards idle, and PostgreSQL ends idle sessions.
    refresh: (address, shards) => {
      const held = [...shards]
      return held.length > 0 ? confirm(address, held) : Effect.tap(library.refresh(address, held), () => keepAlive)
    },
    // The library replaces a session that fails or is silent.
    release: (address, shard) =>
      Effect.catch(Effect.timeout(unlocked(shard), Timing.shardLockRefresh), () => library.release(address, shard)),
    // The library releases every lock of the session.
    releaseAll: (address) => Effect.andThen(library.releaseAll(address), ClusterError.PersistenceError.refail(hold)),
  })
})

/** The library's storage of runners and shard locks, with membership by session lock. */
export const storage: Layer.Layer<
  RunnerStorage.RunnerStorage,
  never,
  ClusterSql | ChangeFeed | RunnerConnections | ShardingConfig.ShardingConfig
> = Layer.effect(RunnerStorage.RunnerStorage, makeStorage)

/** The sleeps of the library that {@link clock} changes: the loop's annotation, and the duration in milliseconds. */
const sleeps = {
  assignments: { loop: "RunnerStorage sync", millis: Duration.toMillis(Timing.refreshAssignments) },
  acquisition: { loop: "Shard acquisition loop", millis: 1_000 },
  /** The limit of each operation on shard locks. */
  locking: { millis: Duration.toMillis(Timing.shardLockRefresh) },
} as const

/** A timer that fires later than this, in milliseconds, shows that the process was stalled. */
const punctualMillis = 100
/** A process that is frozen again and again gets no more than this number of further sleeps. */
const sleepsAtMost = 10

const makeClock = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const changes = yield* (yield* ChangeFeed).follow(feedKind)
  const acquire = Duration.fromInputUnsafe(Timing.shardAcquire)
  return Object.assign(Object.create(clock) as Clock.Clock, { sleep })

  /** Sleeps, and continues with short sleeps until one ends in time: then the process has handled everything that arrived during a stall. */
  function punctually(millis: number, left = sleepsAtMost): Effect.Effect<void> {
    return Effect.suspend(() => {
      const due = clock.monotonicTimeNanosUnsafe() + BigInt((millis + punctualMillis) * 1e6)
      return Effect.flatMap(clock.sleep(Duration.millis(millis)), () =>
        left === 0 || clock.monotonicTimeNanosUnsafe() < due ? Effect.void : punctually(punctualMillis, left - 1),
      )
    })
  }

  function sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.flatMap(Effect.service(References.CurrentLogAnnotations), ({ fiber }) => {
      const millis = Duration.toMillis(duration)
      const { assignments, acquisition, locking } = sleeps
      if (fiber === assignments.loop && millis === assignments.millis) {
        return Effect.raceFirst(clock.sleep(duration), changes.await)
      }
      if (fiber === acquisition.loop && millis === acquisition.millis) return clock.sleep(acquire)
      return millis === locking.millis ? punctually(millis) : clock.sleep(duration)
    })
  }
})

/** A clock that wakes the library's loops when they have something to do. */
export const clock: Layer.Layer<never, never, ChangeFeed> = Layer.effect(Clock.Clock, makeClock)

import * as Membership from "@svc/cluster/Membership"
import { ClusterSql, Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import { Runner, RunnerStorage, ShardId } from "effect/cluster"
import type { SqlConnection } from "effect/sql"
import { TestClock } from "effect/testing"
import { awaitFiber } from "../harness/Actors.ts"
import { databaseLayer } from "../harness/Database.ts"
import { quietFeed } from "../harness/Stores.ts"
import { addressOf, config } from "./RunnerSettings.ts"

/**
 * Starts the storage of one process with its own connections, and returns it with an effect that ends it. It reserves a connection of the
 * pool of `Writes`, which never answers statements that contain `silent`; after it has failed, the next one does.
 */
const process = Effect.fnUntraced(function* (port: number, silent?: string) {
  let reserved: SqlConnection.Connection | undefined
  let statements = 0
  const pool = Layer.effect(
    ClusterSql,
    Effect.map(Effect.service(Writes), (sql) => {
      const reserve = Effect.map(sql.reserve, (connection) => {
        const isFirst = reserved === undefined
        reserved = connection
        const answered = <A, E>(statement: string, answer: Effect.Effect<A, E>) =>
          isFirst && silent !== undefined && statement.includes(silent) ? Effect.never : answer
        return Object.assign(Object.create(connection) as SqlConnection.Connection, {
          executeRaw: (...given: Parameters<typeof connection.executeRaw>) =>
            answered(given[0], connection.executeRaw(...given)),
          executeValues: (...given: Parameters<typeof connection.executeValues>) => {
            statements++
            return answered(given[0], connection.executeValues(...given))
          },
        })
      })
      return new Proxy(sql, { get: (client, key) => (key === "reserve" ? reserve : Reflect.get(client, key)) })
    }),
  )
  // A test that fails must not keep its sessions from the tests after it.
  const scope = yield* Effect.acquireRelease(Scope.make(), Scope.close)
  const services = yield* Layer.buildWithScope(
    Layer.fresh(
      Membership.storage.pipe(
        Layer.provideMerge(Membership.RunnerConnections.layer),
        Layer.provide([config(port), pool]),
      ),
    ),
    scope,
  )
  const storage = Context.get(services, RunnerStorage.RunnerStorage)
  const runner = new Runner.Runner({ address: addressOf(port), groups: ["default"], weight: 1 })
  return {
    storage,
    connections: Context.get(services, Membership.RunnerConnections),
    address: runner.address,
    statements: () => statements,
    session: (statement: string) => reserved!.executeValues(statement, []),
    join: storage.register(runner, true),
    ports: Effect.map(storage.getRunners, (runners) => runners.map(([{ address }]) => address.port).sort()),
    end: Scope.close(scope, Exit.void),
  }
})

/** Terminates the session that holds the lock of the runner, as the end of its process does. */
const endSession = (port: number) =>
  Effect.flatMap(
    Writes,
    (sql) => sql`
      select pg_terminate_backend(pid, 5000) from pg_locks join cluster_runners on machine_id = objid::int8
      where locktype = 'advisory' and address = ${`127.0.0.1:${port}`}`,
  )

layer(Layer.merge(databaseLayer, quietFeed), { timeout: "60 seconds" })("Membership", (it) => {
  it.effect("ends with the session that holds the runner's lock, and returns with the next one", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* process(1), yield* process(2)]
      yield* Effect.all([one.join, other.join])
      expect(yield* one.ports).toEqual([1, 2])
      const connection = yield* Effect.provideService(
        one.connections.open("127.0.0.1:2"),
        Scope.Scope,
        yield* Scope.make(),
      )
      yield* one.ports
      expect(connection.aborted).toBe(false)

      yield* endSession(2)
      expect(yield* one.ports).toEqual([1])
      // The connection is closed, because callers of a suspended process would otherwise wait for their own timeout.
      expect(connection.aborted).toBe(true)
      // The process still sees itself as registered. Otherwise, the library would register it again in a tight loop.
      expect(yield* other.ports).toEqual([1, 2])

      // The library replaces the database session at its next use.
      yield* other.storage.acquire(other.address, [ShardId.make("default", 1)])
      expect(yield* one.ports).toEqual([1, 2])
      // The library releases all locks of the session and continues.
      yield* other.storage.releaseAll(other.address)
      expect(yield* one.ports).toEqual([1, 2])
      yield* other.end
      expect(yield* one.ports).toEqual([1])
      yield* one.end
    }),
  )

  it.effect("begins although the session ended before, during a slow start, or a former one still holds the lock", () =>
    Effect.gen(function* () {
      const [one, next, sql] = [yield* process(9), yield* process(9), yield* Writes]
      const endOwn = Effect.gen(function* () {
        const [[pid]] = (yield* one.session("select pg_backend_pid()")) as unknown as [[number]]
        yield* sql`select pg_terminate_backend(${pid}::int, 5000)`
      })
      const held = sql`
        select count(*)::int as n from pg_locks join cluster_runners on machine_id = objid::int8
        where locktype = 'advisory' and address = '127.0.0.1:9'`
      yield* endOwn
      yield* one.join
      expect([yield* one.ports, yield* held]).toEqual([[9], [{ n: 1 }]])
      yield* next.join
      yield* endOwn
      expect(yield* held).toEqual([{ n: 1 }])
      yield* Effect.all([next.end, one.end])
    }),
  )

  it.effect("of a runner without shards does not wait for a session that is silent", () =>
    Effect.gen(function* () {
      const one = yield* process(11, "select 1")
      yield* one.join
      const refreshed = yield* Effect.forkChild(one.storage.refresh(one.address, []), { startImmediately: true })
      expect(yield* awaitFiber(refreshed, Timing.shardLockRefresh)).toMatchObject({ value: [] })
      yield* one.end
    }),
  )

  it.effect("reports a registration that fails once, although the library tries again and again", () =>
    Effect.gen(function* () {
      const one = yield* process(10)
      const sql = yield* Writes
      const warnings: Array<unknown> = []
      const logger = Logger.make(({ logLevel, message, cause }) => {
        if (logLevel === "Warn") warnings.push([message, Cause.pretty(cause)])
      })
      const tries = (count: number) =>
        Effect.provide(Effect.replicateEffect(Effect.exit(one.join), count), Logger.layer([logger]))
      yield* sql`alter table cluster_runners rename to cluster_runners_away`
      yield* tries(2)
      yield* sql`alter table cluster_runners_away rename to cluster_runners`
      expect(warnings).toEqual([
        [["This process cannot join the cluster, and tries again"], expect.stringContaining("PersistenceError")],
      ])
      yield* tries(1)
      expect(yield* one.ports).toEqual([10])
      expect(warnings.length).toBe(1)
      yield* one.end
    }),
  )

  it.effect(
    "releases shards that move together in few statements, even if the session holds a lock several times",
    () =>
      Effect.gen(function* () {
        const [one, other] = [yield* process(10), yield* process(11)]
        yield* Effect.all([one.join, other.join])
        const [runner] = yield* (yield* Writes)<{ id: number }>`
          select machine_id::int as id from cluster_runners where address = '127.0.0.1:10'`
        // The lock of the runner differs from that of a shard of the same number.
        const [kept, ...moving] = [99, 98, 97, runner!.id].map((n) => ShardId.make("default", n))
        const acquired = (of: typeof one) => of.storage.acquire(of.address, moving)
        expect([yield* acquired(one), yield* acquired(other)]).toEqual([moving, []])
        yield* one.storage.acquire(one.address, [kept!])
        yield* one.session(`select pg_advisory_lock(classid::int8::bit(32)::int4, objid::int4) from pg_locks
        where locktype = 'advisory' and pid = pg_backend_pid() and objid = 1000098`)
        const before = one.statements()
        yield* Effect.forEach(moving, (shard) => one.storage.release(one.address, shard), { concurrency: "unbounded" })
        // One for all shards, one for the lock that was taken twice, and one that finds no further lock.
        expect(one.statements() - before).toBe(3)
        expect(yield* acquired(other)).toEqual(moving)
        expect(yield* one.storage.refresh(one.address, [kept!])).toEqual([kept])
        expect(yield* one.ports).toEqual([10, 11])
        yield* Effect.all([one.end, other.end])
      }),
  )

  it.effect("releases a shard even if the common statement hangs", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* process(12, "pg_advisory_unlock(classid"), yield* process(13)]
      yield* Effect.all([one.join, other.join])
      const shard = ShardId.make("default", 1)
      yield* one.storage.acquire(one.address, [shard])
      const released = yield* Effect.forkChild(one.storage.release(one.address, shard), { startImmediately: true })
      // The library releases it then.
      yield* awaitFiber(released, "100 millis")
      expect(yield* other.storage.acquire(other.address, [shard])).toEqual([shard])
      yield* Effect.all([one.end, other.end])
    }),
  )

  it.effect("ends when the runner leaves, although its session continues", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* process(3), yield* process(4)]
      yield* Effect.all([one.join, other.join])
      yield* other.storage.unregister(other.address)
      expect(yield* one.ports).toEqual([3])
      yield* other.storage.releaseAll(other.address)
      expect(yield* one.ports).toEqual([3])
      yield* Effect.all([one.end, other.end])
    }),
  )

  it.effect("keeps the shards while the confirmation of their locks is late, until their expiration", () =>
    Effect.gen(function* () {
      const one = yield* process(6)
      yield* one.join
      const shard = ShardId.make("default", 2)
      const later = ShardId.make("default", 3)
      expect(yield* one.storage.acquire(one.address, [shard])).toEqual([shard])
      expect(yield* one.storage.refresh(one.address, [shard])).toEqual([shard])

      const blocker = yield* (yield* Writes).reserve
      yield* Effect.addFinalizer(() => Effect.ignore(blocker.executeRaw("rollback", [])))
      const block = Effect.andThen(
        blocker.executeRaw("begin", []),
        blocker.executeRaw("lock table cluster_runners in exclusive mode", []),
      )
      yield* block
      const refresh = (shards: ReadonlyArray<ShardId.ShardId>) =>
        Effect.forkChild(one.storage.refresh(one.address, shards), { startImmediately: true })
      const late = yield* refresh([shard])
      yield* TestClock.adjust(Timing.shardLockPatience)
      expect(yield* Fiber.join(late)).toEqual([shard])
      // The same statement is still running. A shard that was acquired after its start is kept as well.
      const again = yield* refresh([shard, later])
      yield* TestClock.adjust(Timing.shardLockPatience)
      expect(yield* Fiber.join(again)).toEqual([shard, later])
      const ended = yield* refresh([shard, later])
      yield* blocker.executeRaw("rollback", [])
      expect(yield* Fiber.join(ended)).toEqual([shard, later])

      yield* block
      yield* TestClock.adjust("1 hour")
      const expired = yield* refresh([shard])
      yield* TestClock.adjust("1 hour")
      expect(Exit.isFailure(yield* Fiber.await(expired))).toBe(true)
      yield* blocker.executeRaw("rollback", [])
      // The storage has replaced the session, which lost the locks.
      expect(yield* one.storage.refresh(one.address, [shard])).toEqual([])
      yield* one.end
    }),
  )

  it.effect("ends an idle session after the expiration of shard locks, so that a frozen process loses its shards", () =>
    Effect.gen(function* () {
      const one = yield* process(7)
      yield* one.join
      yield* one.storage.acquire(one.address, [ShardId.make("default", 4)])
      const [rows] = yield* one.session("show idle_session_timeout")
      expect(rows).toEqual(["1h"])
      yield* one.end
    }),
  )
})

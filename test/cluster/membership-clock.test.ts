/** The clock of the cluster's loops (`Membership.clock`). These tests fail if the library changes the sleeps that the clock recognizes. */
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import * as Membership from "@svc/cluster/Membership"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Duration, Effect, Exit, Fiber, Latch, Layer, Scope } from "effect"
import { MessageStorage, Runner, RunnerHealth, Runners, RunnerStorage, ShardId, Sharding } from "effect/cluster"
import { TestClock } from "effect/testing"
import { databaseLayer } from "../harness/Database.ts"
import { quietFeed } from "../harness/Stores.ts"
import { addressOf, config } from "./RunnerSettings.ts"

layer(Layer.merge(databaseLayer, quietFeed), { timeout: "60 seconds" })("The clock of the cluster", (it) => {
  it.effect("keeps the shards of a process that stood still while the confirmation of their locks arrived", () =>
    Effect.gen(function* () {
      const self = new Runner.Runner({ address: addressOf(8), groups: ["default"], weight: 1 })
      const shard = ShardId.make("default", 1)
      let confirmation: Effect.Effect<Array<ShardId.ShardId>> = Effect.succeed([shard])
      const storage = Layer.succeed(RunnerStorage.RunnerStorage, {
        register: () => Effect.succeed(1 as never),
        unregister: () => Effect.void,
        getRunners: Effect.succeed([[self, true] as const]),
        setRunnerHealth: () => Effect.void,
        acquire: () => Effect.succeed([shard]),
        refresh: () => Effect.suspend(() => confirmation),
        release: () => Effect.void,
        releaseAll: () => Effect.void,
      })
      /** Time in nanoseconds in which the process stood still. */
      let stalled = 0n
      const testClock = yield* Clock.Clock
      const clock = Object.assign(Object.create(testClock) as Clock.Clock, {
        monotonicTimeNanosUnsafe: () => testClock.monotonicTimeNanosUnsafe() + stalled,
      })
      const scope = yield* Scope.make()
      const services = yield* Layer.buildWithScope(
        Layer.fresh(Sharding.layer).pipe(
          Layer.provide([Runners.layerNoop, MessageStorage.layerNoop]),
          Layer.provide(MessageStorage.layerNoop),
          Layer.provide([storage, RunnerHealth.layerNoop]),
          Layer.provide(config(8)),
          Layer.provide(Layer.fresh(Membership.clock).pipe(Layer.provide(Layer.succeed(Clock.Clock, clock)))),
        ),
        scope,
      )
      const sharding = Context.get(services, Sharding.Sharding)
      yield* TestClock.adjust(Timing.shardAcquire)
      expect(sharding.hasShardId(shard)).toBe(true)

      const refreshMillis = Duration.toMillis(Timing.shardLockRefresh)
      /** Starts a confirmation that only ends with the returned effect. */
      const begin = Effect.gen(function* () {
        const latch = yield* Latch.make()
        confirmation = Effect.as(latch.await, [shard])
        yield* TestClock.adjust(refreshMillis)
        return Effect.sync(() => {
          confirmation = Effect.succeed([shard])
          latch.openUnsafe()
        })
      })
      const arrives = yield* begin
      stalled += 200_000_000n
      yield* TestClock.adjust(refreshMillis)
      expect(sharding.hasShardId(shard)).toBe(true)
      yield* arrives
      yield* TestClock.adjust(refreshMillis)
      expect(sharding.hasShardId(shard)).toBe(true)

      // Without a stall, the limit of the library holds.
      yield* begin
      yield* TestClock.adjust(refreshMillis)
      expect(sharding.hasShardId(shard)).toBe(false)
      const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(closed)
    }),
  )

  it.effect("wakes the library's loops: a change is read at once, and a held shard is tried again soon", () =>
    Effect.gen(function* () {
      const self = new Runner.Runner({ address: addressOf(5), groups: ["default"], weight: 1 })
      const counted = { reads: 0, tries: 0 }
      const storage = Layer.succeed(RunnerStorage.RunnerStorage, {
        register: () => Effect.succeed(1 as never),
        unregister: () => Effect.void,
        getRunners: Effect.sync(() => (counted.reads++, [[self, true] as const])),
        setRunnerHealth: () => Effect.void,
        acquire: () => Effect.sync(() => (counted.tries++, [])),
        refresh: () => Effect.succeed([]),
        release: () => Effect.void,
        releaseAll: () => Effect.void,
      })
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(
        Layer.fresh(Sharding.layer).pipe(
          Layer.provide([Runners.layerNoop, MessageStorage.layerNoop]),
          Layer.provide(MessageStorage.layerNoop),
          Layer.provide([storage, RunnerHealth.layerNoop]),
          Layer.provide(config(5)),
          Layer.provide(Layer.fresh(Membership.clock)),
        ),
        scope,
      )
      yield* TestClock.adjust(1)
      const { reads, tries } = counted
      expect(reads).toBeGreaterThan(0)
      // The library's timeout for lock operations is shorter than a second and must not be affected by the shortened sleep.
      const lockTimeout = Duration.toMillis(Duration.fromInputUnsafe(Timing.shardLockExpiration)) / 3
      expect(lockTimeout).toBeLessThan(1_000)
      expect(tries).toBeGreaterThan(0)

      yield* TestClock.adjust(Timing.shardAcquire)
      yield* TestClock.adjust(Timing.shardAcquire)
      expect(counted.tries).toBe(tries + 2)
      expect(counted.reads).toBe(reads)
      ;(yield* ChangeFeed).notify("runners/all")
      yield* TestClock.adjust(0)
      expect(counted.reads).toBe(reads + 1)
      yield* Scope.close(scope, Exit.void)
    }),
  )
})

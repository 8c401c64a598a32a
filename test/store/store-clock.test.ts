import * as Serve from "@svc/cli/serve/Serve"
import { Reads } from "@svc/cluster/store/Database"
import * as StoreClock from "@svc/cluster/store/StoreClock"
import { Timing } from "@svc/cluster/Timing"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Duration, Effect, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { databaseLayer } from "../harness/Database.ts"
import { makeOrg, sealingLayer } from "../harness/Stores.ts"

const hour = Duration.toMillis("1 hour")

layer(databaseLayer)("StoreClock", (it) => {
  /** A process whose own clock differs from the store's clock and can be set. */
  const process = Effect.gen(function* () {
    const test = yield* Clock.Clock
    const own = { skew: 0 }
    const wrong = Object.assign(Object.create(test) as Clock.Clock, {
      currentTimeMillisUnsafe: () => Date.now() + own.skew,
    })
    const start = (skew: number) =>
      Effect.gen(function* () {
        own.skew = skew
        const context = yield* Layer.buildWithScope(
          Layer.fresh(StoreClock.layer).pipe(Layer.provide(Layer.succeed(Clock.Clock, wrong))),
          yield* Scope.Scope,
        )
        return yield* Effect.provideContext(Clock.Clock, context)
      })
    return { own, wrong, start }
  })
  const differs = (clock: Clock.Clock) =>
    Effect.flatMap(Reads, (sql) =>
      Effect.map(
        sql<{ millis: number }>`select extract(epoch from clock_timestamp())::float8 * 1000 as millis`,
        ([row]) => Math.abs(clock.currentTimeMillisUnsafe() - row!.millis),
      ),
    )

  it.effect("has the store's time in a process whose clock is an hour ahead or behind", () =>
    Effect.gen(function* () {
      const { start } = yield* process
      for (const skew of [hour, -hour]) expect(yield* differs(yield* start(skew))).toBeLessThan(hour / 60)
    }),
  )

  it.effect("corrects differences of more than 100 ms only", () =>
    Effect.gen(function* () {
      for (const [behind, corrected] of [
        [100, 0],
        [-100, 0],
        [101, 101],
        [-101, -101],
      ] as const) {
        const now = yield* Clock.currentTimeMillis
        const store = (() => Effect.succeed([{ millis: now + behind }])) as unknown as Reads["Service"]
        const context = yield* Layer.build(
          Layer.fresh(StoreClock.layer).pipe(Layer.provide(Layer.succeed(Reads, store))),
        )
        expect((yield* Effect.provideContext(Clock.currentTimeMillis, context)) - now).toBe(corrected)
      }
    }),
  )

  it.effect("does not follow the clock of the process when that is set", () =>
    Effect.gen(function* () {
      const { own, start } = yield* process
      const clock = yield* start(0)
      const before = clock.currentTimeMillisUnsafe()
      own.skew = hour
      expect(clock.currentTimeMillisUnsafe() - before).toBeLessThan(hour / 60)
      yield* TestClock.adjust("1 second")
      expect(clock.currentTimeMillisUnsafe() - before).toBe(1_000)
    }),
  )

  it.effect("follows the store when the clocks drift apart", () =>
    Effect.gen(function* () {
      const { start } = yield* process
      const clock = yield* start(0)
      // The test's monotonic time is an hour ahead of the store.
      yield* TestClock.adjust("1 hour")
      while ((yield* differs(clock)) > hour / 60) yield* TestClock.adjust(Timing.storeClock)
    }),
  )

  it.effect("decides the hour of usage in a process whose clock is a day ahead", () =>
    Effect.gen(function* () {
      const { own, wrong } = yield* process
      own.skew = 24 * hour
      const context = yield* Layer.build(
        Layer.fresh(Serve.timed).pipe(Layer.provide(Layer.succeed(Clock.Clock, wrong))),
      )
      const [counters, org] = [Context.get(context, UsageCounters), yield* Effect.provide(makeOrg, sealingLayer)]
      counters.add({ org }, "call", { count: 1 })
      yield* counters.flush
      const found = yield* Effect.flatMap(
        Reads,
        (sql) =>
          sql`select 1 from usage_hour where org_id = ${org} and hour between now() - interval '2 hours' and now()`,
      )
      expect(found).toHaveLength(1)
    }),
  )
})

/** Attempts on leased rows, and the records of what they did, without a store. */
import * as Leasing from "@svc/cluster/work/Leasing"
import { Timing } from "@svc/cluster/Timing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, FiberSet } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"

/** Lets the fibers run as far as they can. */
const settled = Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))

describe("Attempts on leased rows", () => {
  it.effect("start although their actor is interrupted while it leases, and the actor waits for them", () =>
    Effect.gen(function* () {
      const { step, settled: wait } = yield* Leasing.make
      const attempts = yield* FiberSet.make<void>()
      const [leased, done] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const leasing = yield* Effect.forkChild(
        step(Effect.andThen(Deferred.await(leased), FiberSet.run(attempts, Deferred.await(done)))),
      )
      yield* settled
      yield* Effect.forkChild(Fiber.interrupt(leasing))
      const leaving = yield* Effect.forkChild(wait(attempts))
      const seen: Array<unknown> = []
      const look = Effect.andThen(
        settled,
        Effect.map(FiberSet.size(attempts), (size) => void seen.push([size, leaving.pollUnsafe()])),
      )
      yield* look
      yield* Deferred.succeed(leased, undefined)
      yield* look
      yield* Deferred.succeed(done, undefined)
      yield* look
      expect(seen).toEqual([
        [0, undefined],
        [1, undefined],
        [0, Exit.void],
      ])
    }).pipe(Effect.scoped),
  )

  it.effect("delay their actor for a limited time", () =>
    Effect.gen(function* () {
      const { settled: wait } = yield* Leasing.make
      const attempts = yield* FiberSet.make<void>()
      yield* FiberSet.run(attempts, Effect.never)
      const leaving = yield* Effect.forkChild(wait(attempts))
      yield* TestClock.adjust(Duration.toMillis(Timing.settle) - 1)
      expect(leaving.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect(leaving.pollUnsafe()).toEqual(Exit.void)
    }).pipe(Effect.scoped),
  )
})

describe("The record of an attempt", () => {
  const failing = (reason: SqlError.SqlError["reason"], times = Infinity) => {
    const tries = { count: 0 }
    const record = Effect.suspend(() =>
      tries.count++ < times ? Effect.fail(new SqlError.SqlError({ reason })) : Effect.void,
    )
    return Effect.map(Effect.forkChild(Leasing.recorded(record)), (fiber) => ({ tries, fiber }))
  }
  const away = new SqlError.ConnectionError({ cause: new Error("shutting down") })

  it.effect("is tried again every half second while the store is away, for 30 seconds", () =>
    Effect.gen(function* () {
      const [back, gone] = [yield* failing(away, 3), yield* failing(away)]
      yield* TestClock.adjust("1499 millis")
      expect([back.fiber.pollUnsafe(), back.tries.count]).toEqual([undefined, 3])
      yield* TestClock.adjust("1 millis")
      expect([back.fiber.pollUnsafe(), back.tries.count]).toEqual([Exit.void, 4])
      yield* TestClock.adjust("28 seconds")
      expect(gone.fiber.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 second")
      expect(gone.fiber.pollUnsafe()).toMatchObject({ _tag: "Failure" })
    }),
  )

  it.effect("is not tried again if the store refuses it", () =>
    Effect.gen(function* () {
      const { fiber, tries } = yield* failing(new SqlError.SqlSyntaxError({ cause: new Error("no such column") }))
      yield* settled
      expect([fiber.pollUnsafe(), tries.count]).toMatchObject([{ _tag: "Failure" }, 1])
    }),
  )

  it.effect("is not cut off by an interruption", () =>
    Effect.gen(function* () {
      let isStored = false
      const record = Effect.andThen(
        Effect.sleep("1 second"),
        Effect.sync(() => void (isStored = true)),
      )
      const fiber = yield* Effect.forkChild(Leasing.recorded(record))
      yield* settled
      yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1 second")
      expect(isStored).toBe(true)
    }),
  )
})

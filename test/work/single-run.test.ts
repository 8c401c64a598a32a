/** Background work of a source: one run at a time, with a pause between two. */
import * as SingleRun from "@svc/cluster/work/SingleRun"
import { Timing } from "@svc/cluster/Timing"
import { dueWork } from "@svc/cluster/connectors/work/DueWork"
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Latch, Logger } from "effect"
import { TestClock } from "effect/testing"

const pause = Timing.busyLookMillis

it.effect("a run excludes others until it ends, and the next one starts after a pause", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(1_000_000)
    const one = yield* SingleRun.make
    const [end, changed] = [yield* Latch.make(), yield* Latch.make()]
    const due = new Date(1_000_500)
    expect([one.isBusy(), one.isFree(0), yield* one.from(due), yield* one.from(null)]).toEqual([false, true, due, null])
    expect(yield* one.start(end.await, "no", changed.open)).toBe(true)
    expect([one.isBusy(), one.isFree(2_000_000)]).toEqual([true, false])
    yield* TestClock.adjust("10 seconds")
    yield* end.open
    yield* changed.await
    const ended = yield* Clock.currentTimeMillis
    expect([one.isBusy(), one.isFree(ended), one.isFree(ended + pause - 1), one.isFree(ended + pause)]).toEqual([
      false,
      false,
      false,
      true,
    ])
    // Overdue work waits for the end of the pause, and later work for its time.
    expect(yield* one.from(due)).toEqual(new Date(ended + pause))
    expect(yield* one.from(new Date(ended + 2 * pause))).toEqual(new Date(ended + 2 * pause))
    // A clock that was set back causes no delay.
    yield* TestClock.setTime(ended - 1)
    expect([one.isFree(ended - 1), yield* one.from(due)]).toEqual([true, due])
  }).pipe(Effect.scoped),
)

it.effect("a run that fails is logged and pauses like any other, and settling waits for runs in flight", () => {
  const logged: Array<unknown> = []
  return Effect.gen(function* () {
    const one = yield* SingleRun.make
    let changes = 0
    const changed = Effect.sync(() => void changes++)
    yield* one.start(Effect.fail("broken"), "The work failed", changed)
    yield* one.settle
    expect([changes, one.isBusy(), one.isFree(yield* Clock.currentTimeMillis)]).toEqual([1, false, false])
    expect(JSON.stringify(logged)).toContain("The work failed")
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(message))])))
})

it.effect("work that stays overdue is next due after the pause, and never while its Connector is paused", () =>
  Effect.gen(function* () {
    const { make } = dueWork({
      name: "poll",
      column: "poll_due_at",
      dueOf: () => new Date(0),
      make: () => Effect.succeed(() => Effect.void),
    })
    const work = yield* make({} as never)
    const state = (own: boolean) => ({ identity: {}, connection: {}, pause: { own, everyone: false } }) as never
    expect(yield* work.nextDue(state(false))).toEqual(new Date(0))
    expect(yield* work.dispatch(state(false), Effect.void, Effect.void)).toBe(true)
    yield* work.settle
    expect(yield* work.nextDue(state(false))).toEqual(new Date((yield* Clock.currentTimeMillis) + pause))
    expect(yield* work.nextDue(state(true))).toBeNull()
  }).pipe(Effect.scoped),
)

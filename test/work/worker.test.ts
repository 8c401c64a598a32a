import type { Running } from "@svc/cluster/work/Source"
import { Timing } from "@svc/cluster/Timing"
import * as Worker from "@svc/cluster/work/Worker"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber } from "effect"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import { TestClock } from "effect/testing"

/** A work source whose behavior the test defines. */
const pretend = (parts: Partial<Running<string>>): Running<string> => ({
  dispatch: () => Effect.succeed(false),
  nextDue: () => Effect.succeed(null),
  isBusy: () => false,
  settle: Effect.void,
  ...parts,
})

const working = (sources: ReadonlyArray<Running<string>>, there = true) =>
  Worker.make({ state: Effect.succeed(there ? "there" : undefined), sources, start: Effect.void })

describe("an actor's work", () => {
  it.effect("ends immediately without an entity or without due work", () =>
    Effect.gen(function* () {
      let dispatched = 0
      const source = pretend({ dispatch: () => Effect.sync(() => (dispatched++, false)) })
      yield* (yield* working([source], false)).run
      expect(dispatched).toBe(0)
      yield* (yield* working([source])).run
      expect(dispatched).toBe(1)
    }),
  )

  it.effect("checks only the source whose work was reported, and every source if its work was found overdue", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const named = (name: string) => pretend({ dispatch: () => Effect.sync(() => (order.push(name), false)) })
      const names = ["saga", "outbox", "deliveries"]
      const sources = names.map(named)
      const worker = yield* Worker.make({ state: Effect.succeed("there"), sources, names, start: Effect.void })
      yield* worker.run
      yield* worker.wakeFor("outbox")
      yield* worker.run
      expect(order.splice(0)).toEqual([...names, "outbox"])
      yield* worker.run
      yield* worker.wakeFor("of another actor")
      yield* worker.run
      expect(order).toEqual([...names, ...names])
    }),
  )

  it.effect("checks all sources again after a check that failed", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      let fails = false
      const named = (name: string) =>
        pretend({
          dispatch: () =>
            Effect.suspend(() => (order.push(name), fails ? Effect.die("the store is away") : Effect.succeed(false))),
        })
      const names = ["saga", "outbox"]
      const parts = { state: Effect.succeed("there"), sources: names.map(named), names, start: Effect.void }
      const worker = yield* Worker.make(parts)
      yield* worker.run
      yield* worker.wakeFor("saga")
      fails = true
      yield* Effect.exit(worker.run)
      fails = false
      yield* worker.wakeFor("outbox")
      yield* worker.run
      expect(order).toEqual([...names, "saga", ...names])
    }),
  )

  it.effect("is also checked if it is reported while a run ends", () =>
    Effect.gen(function* () {
      const lost: Array<number> = []
      for (let steps = 0; steps < 40; steps++) {
        const checked = yield* Deferred.make<void>()
        let isKnown = false
        let checks = 0
        const source = pretend({
          dispatch: () => Effect.sync(() => (isKnown && checks++, false)),
          nextDue: () => Effect.as(Deferred.succeed(checked, undefined), null),
        })
        const start = Effect.sync(() => checks++)
        const worker = yield* Worker.make({ state: Effect.succeed("there"), sources: [source], start })
        // The run yields to other fibers after each of its steps.
        const run = yield* Effect.forkChild(Effect.provideService(worker.run, MaxOpsBeforeYield, 3))
        yield* Deferred.await(checked)
        for (let step = 0; step < steps; step++) yield* Effect.yieldNow
        isKnown = true
        yield* worker.wake
        yield* Fiber.join(run)
        yield* Effect.yieldNow
        if (checks === 0) lost.push(steps)
      }
      expect(lost).toEqual([])
    }),
  )

  it.effect("checks all sources again for a changed entity", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      let state = "there"
      const named = (name: string) => pretend({ dispatch: () => Effect.sync(() => (order.push(name), false)) })
      const names = ["saga", "outbox"]
      const parts = { state: Effect.sync(() => state), sources: names.map(named), names, start: Effect.void }
      const worker = yield* Worker.make(parts)
      yield* worker.run
      state = "changed"
      yield* worker.wakeFor("outbox")
      yield* worker.run
      expect(order).toEqual([...names, ...names])
    }),
  )

  it.effect("does not end while one of its sources is busy, and sleeps meanwhile", () =>
    Effect.gen(function* () {
      let turns = 0
      const state = Effect.sync(() => (turns++, "there"))
      const sources = [pretend({ isBusy: () => true }), pretend({})]
      const worker = yield* Worker.make({ state, sources, start: Effect.void })
      const run = yield* Effect.forkChild(worker.run, { startImmediately: true })
      yield* worker.wake
      yield* TestClock.adjust(0)
      yield* TestClock.adjust(0)
      expect([run.pollUnsafe(), turns]).toEqual([undefined, 2])
      yield* Fiber.interrupt(run)
    }),
  )

  it.effect("checks a source again immediately after completed work, before other sources", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      let remaining = 3
      const saga = pretend({ dispatch: () => Effect.sync(() => (order.push("saga"), remaining-- > 1)) })
      const queue = pretend({ dispatch: () => Effect.sync(() => (order.push("queue"), false)) })
      yield* (yield* working([saga, queue])).run
      expect(order).toEqual(["saga", "saga", "saga", "queue"])
    }),
  )

  it.effect("sleeps until work is due soon, and leaves later work to Overdue", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const now = Clock.currentTimeMillis
      const source = pretend({
        dispatch: () => Effect.map(now, (at) => (seen.push(at), false)),
        nextDue: () => Effect.map(now, (at) => new Date(at < 60_000 ? 60_000 : at + 10 * 60_000)),
      })
      const run = yield* Effect.forkChild((yield* working([source])).run, { startImmediately: true })
      yield* TestClock.adjust("59 seconds")
      expect(seen).toEqual([0])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(run)
      expect(seen).toEqual([0, 60_000])
    }),
  )

  it.effect("does not poll in a tight loop for due work that cannot start", () =>
    Effect.gen(function* () {
      let checks = 0
      const source = pretend({
        dispatch: () => Effect.sync(() => (checks++, false)),
        nextDue: () => Effect.succeed(new Date(0)),
      })
      const run = yield* Effect.forkChild((yield* working([source])).run, { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      expect(checks).toBe(11)
      yield* Fiber.interrupt(run)
    }),
  )

  it.effect("waits for the end of started work if a limit of the source is reached", () =>
    Effect.gen(function* () {
      let checks = 0
      const source = pretend({
        dispatch: () => Effect.sync(() => (checks++, false)),
        nextDue: () => Effect.succeed(new Date(0)),
        isBusy: () => true,
      })
      const worker = yield* working([source])
      const run = yield* Effect.forkChild(worker.run, { startImmediately: true })
      yield* TestClock.adjust(Timing.residentWaitMillis - 1)
      expect(checks).toBe(1)
      // A second call does not work beside the first one.
      yield* worker.run
      yield* TestClock.adjust(0)
      expect(checks).toBe(2)
      yield* Fiber.interrupt(run)
    }),
  )

  it.effect("notices work that becomes due during its last check", () =>
    Effect.gen(function* () {
      const looking = yield* Deferred.make<void>()
      const proceed = yield* Deferred.make<void>()
      let dispatched = 0
      const source = pretend({
        dispatch: () => Effect.sync(() => (dispatched++, false)),
        // The worker is woken while its first check for due work is in progress.
        nextDue: () =>
          dispatched > 1
            ? Effect.succeed(null)
            : Effect.as(Effect.andThen(Deferred.succeed(looking, undefined), Deferred.await(proceed)), null),
      })
      const worker = yield* working([source])
      const run = yield* Effect.forkChild(worker.run, { startImmediately: true })
      yield* Deferred.await(looking)
      yield* worker.wake
      yield* Deferred.succeed(proceed, undefined)
      yield* Fiber.join(run)
      expect(dispatched).toBe(2)
    }),
  )

  it.effect("begins if its entity is created while the worker finds none", () =>
    Effect.gen(function* () {
      for (const wake of ["wake", "wakeFor"] as const) {
        const [looking, proceed] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        let [looks, dispatched] = [0, 0]
        const worker = yield* Worker.make({
          state: Effect.suspend(() =>
            looks++ > 0
              ? Effect.succeed("there")
              : Effect.as(Effect.andThen(Deferred.succeed(looking, undefined), Deferred.await(proceed)), undefined),
          ),
          sources: [pretend({ dispatch: () => Effect.sync(() => (dispatched++, false)) })],
          names: ["own"],
          start: Effect.void,
        })
        const run = yield* Effect.forkChild(worker.run, { startImmediately: true })
        yield* Deferred.await(looking)
        yield* wake === "wake" ? worker.wake : worker.wakeFor("own")
        yield* Deferred.succeed(proceed, undefined)
        yield* Fiber.join(run)
        expect(dispatched).toBe(1)
      }
    }),
  )

  it.effect("is woken when started work ends, and waits for it when the shard moves", () =>
    Effect.gen(function* () {
      let busy = false
      let settled = false
      let end: Effect.Effect<void> = Effect.void
      const source = pretend({
        dispatch: (_, changed) =>
          Effect.sync(() => {
            if (busy) return false
            end = changed
            return (busy = true)
          }),
        isBusy: () => busy,
        settle: Effect.sync(() => void (settled = true)),
      })
      const worker = yield* working([source])
      const run = yield* Effect.forkChild(worker.run, { startImmediately: true })
      expect(busy).toBe(true)
      busy = false
      yield* end
      yield* TestClock.adjust(0)
      // The check was repeated although the clock did not advance.
      expect(busy).toBe(true)
      yield* Fiber.interrupt(run)
      expect(settled).toBe(true)
    }),
  )

  it.effect("checks only the source whose work ended if no other is affected, and otherwise all", () =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      let ends: ReadonlyArray<Effect.Effect<void>> = []
      const other = pretend({
        dispatch: () => Effect.sync(() => (calls.push("other"), false)),
        nextDue: () => Effect.map(Clock.currentTimeMillis, (at) => new Date(Math.max(at + 1_000, 60_000))),
      })
      const queue = pretend({
        dispatch: (_, changed, ours) => Effect.sync(() => (calls.push("queue"), (ends = [changed, ours]), false)),
        isBusy: () => true,
      })
      const run = yield* Effect.forkChild((yield* working([other, queue])).run, { startImmediately: true })
      const after = Effect.fnUntraced(function* (end: Effect.Effect<void>) {
        calls.length = 0
        yield* end
        yield* TestClock.adjust(0)
        return [...calls]
      })
      expect(yield* after(ends[1]!)).toEqual(["queue"])
      expect(yield* after(ends[0]!)).toEqual(["other", "queue"])
      // The due time of the other source stays valid until then, and no longer.
      expect(yield* after(TestClock.setTime(59_999))).toEqual([])
      expect(yield* after(TestClock.setTime(60_000))).toEqual(["other"])
      yield* Fiber.interrupt(run)
    }),
  )

  it.effect("calls nextDue first for a source that rarely has due work, and starts work that is due", () =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const source = pretend({
        isSeldomDue: true,
        dispatch: () => Effect.sync(() => (calls.push("dispatch"), false)),
        nextDue: () => Effect.sync(() => (calls.push("due"), calls.length > 3 ? null : new Date(60_000))),
      })
      const run = yield* Effect.forkChild((yield* working([source])).run, { startImmediately: true })
      expect(calls).toEqual(["due"])
      yield* TestClock.setTime(60_000)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(run)
      expect(calls).toEqual(["due", "dispatch", "due", "dispatch", "due"])
    }),
  )
})

import { it, expect } from "@effect/vitest"
import * as Batcher from "@svc/cluster/store/Batcher"
import { Effect, Exit, Fiber, Latch } from "effect"

/** A batcher whose batches wait for a gate, with the batches that have begun. */
const gated = Effect.fnUntraced(function* <E = never>(limits: Batcher.BatchLimits<number, E>) {
  const gate = yield* Latch.make()
  const batches: Array<ReadonlyArray<number>> = []
  const call = yield* Batcher.make((items: ReadonlyArray<number>) => {
    batches.push(items)
    return Effect.as(gate.await, items)
  }, limits)
  return { gate, batches, call }
})

it.effect("a batch contains the queued calls in order, up to its number and weight, and an overweight call alone", () =>
  Effect.gen(function* () {
    const { gate, batches, call } = yield* gated({ atOnce: 1, most: 3, heaviest: { weight: 10, of: (item) => item } })
    const answers = yield* Effect.forkChild(
      Effect.forEach([1, 1, 1, 1, 6, 3, 5, 6, 99, 4, 4], (item) => call(item), { concurrency: "unbounded" }),
    )
    yield* Effect.yieldNow
    yield* gate.open
    expect(yield* Fiber.join(answers)).toHaveLength(11)
    expect(batches).toEqual([[1, 1, 1], [1, 6, 3], [5], [6], [99], [4, 4]])
  }).pipe(Effect.scoped),
)

it.effect("calls of one name are never in the same batch", () =>
  Effect.gen(function* () {
    const batches: Array<ReadonlyArray<string>> = []
    const call = yield* Batcher.make(
      (items: ReadonlyArray<string>) => {
        batches.push(items)
        return Effect.succeed(items)
      },
      { atOnce: 1, most: 3, apart: (item) => item },
    )
    yield* Effect.forEach(["a", "b", "a", "a", "b", "c", "d"], (item) => call(item), { concurrency: "unbounded" })
    expect(batches).toEqual([["a", "b"], ["a"], ["a", "b", "c"], ["d"]])
  }).pipe(Effect.scoped),
)

it.effect("a call fails at its deadline, queued or in flight, and does not run after it", () =>
  Effect.gen(function* () {
    const { gate, batches, call } = yield* gated({
      atOnce: 1,
      most: 1,
      deadline: { millis: 20, late: () => Effect.fail("late" as const) },
    })
    const answers = yield* Effect.forEach([1, 2], (item) => Effect.exit(call(item)), { concurrency: "unbounded" })
    expect(answers).toEqual([Exit.fail("late"), Exit.fail("late")])
    yield* gate.open
    expect(yield* call(3)).toBe(3)
    expect(batches).toEqual([[1], [3]])
  }).pipe(Effect.scoped),
)

it.effect("a batch that fails or dies ends, and the next one runs", () =>
  Effect.gen(function* () {
    const outcomes = [Effect.fail("refused"), Effect.die("broken"), Effect.succeed(["done"])]
    const call = yield* Batcher.make(() => outcomes.shift()!, { atOnce: 1, most: 1 })
    const answers = yield* Effect.forEach([1, 2, 3], (item) => Effect.exit(call(item)), { concurrency: "unbounded" })
    expect(answers).toEqual([Exit.fail("refused"), Exit.die("broken"), Exit.succeed("done")])
  }).pipe(Effect.scoped),
)

it.effect("an interrupted call leaves the queue alone, and other calls keep their place", () =>
  Effect.gen(function* () {
    const { gate, batches, call } = yield* gated({ atOnce: 1, most: 1 })
    const [inFlight, second, queued, last] = yield* Effect.forEach([1, 2, 3, 4], (item) =>
      Effect.tap(Effect.forkChild(call(item), { startImmediately: true }), turn),
    )
    yield* Fiber.interrupt(queued!)
    yield* Fiber.interrupt(inFlight!)
    yield* gate.open
    expect([yield* Fiber.join(second!), yield* Fiber.join(last!)]).toEqual([2, 4])
    expect(batches).toEqual([[1], [2], [4]])
  }).pipe(Effect.scoped),
)

/** Runs a batcher in which the first caller adds another item as soon as its first item is done, while a second caller waits. */
const withOneMore = (nextFirst: boolean) =>
  Effect.gen(function* () {
    const batches: Array<ReadonlyArray<string>> = []
    const call = yield* Batcher.make(
      (items: ReadonlyArray<string>) =>
        Effect.andThen(
          Effect.yieldNow,
          Effect.sync(() => (batches.push(items), items)),
        ),
      { atOnce: 1, most: 2, nextFirst, apart: (item) => item.slice(0, 1) },
    )
    const asker = Effect.andThen(call("a1"), call("b2"))
    yield* Effect.forEach([asker, call("a2")], (effect) => effect, { concurrency: "unbounded" })
    return batches
  }).pipe(Effect.scoped)

it.effect("calls made when a batch ends join the next batch, unless it starts first", () =>
  Effect.gen(function* () {
    expect(yield* withOneMore(false)).toEqual([["a1"], ["a2", "b2"]])
    expect(yield* withOneMore(true)).toEqual([["a1"], ["a2"], ["b2"]])
  }),
)

/** Waits for the next turn of the event loop. */
const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/** Runs a batch of one item until the gate opens, and adds each list of further items in its own turn of the event loop. */
const beside = (
  others: ReadonlyArray<ReadonlyArray<number>>,
  limits: { readonly least: number; readonly millis: number },
) =>
  Effect.gen(function* () {
    const gate = yield* Latch.make()
    const second = yield* Latch.make()
    const batches: Array<ReadonlyArray<number>> = []
    const call = yield* Batcher.make(
      (items: ReadonlyArray<number>) => {
        batches.push(items)
        return Effect.andThen(batches.length > 1 ? second.open : Effect.void, Effect.as(gate.await, items))
      },
      { atOnce: 2, most: 10, beside: limits },
    )
    const calls = yield* Effect.forEach([[0], ...others], (items) =>
      Effect.tap(
        Effect.forkChild(
          Effect.forEach(items, (item) => call(item), { concurrency: "unbounded" }),
          {
            startImmediately: true,
          },
        ),
        turn,
      ),
    )
    const ended = Effect.andThen(gate.open, Effect.forEach(calls, Fiber.join))
    return { batches, second: second.await, ended }
  })

it.effect("a batch starts beside one in flight only with enough calls, other calls wait for its end", () =>
  Effect.gen(function* () {
    const few = yield* beside([[1], [2]], { least: 3, millis: 60_000 })
    expect(few.batches).toEqual([[0]])
    yield* few.ended
    expect(few.batches).toEqual([[0], [1, 2]])

    const enough = yield* beside([[1], [2], [3]], { least: 3, millis: 60_000 })
    expect(enough.batches).toEqual([[0], [1, 2, 3]])
    yield* enough.ended
  }).pipe(Effect.scoped),
)

it.effect("a batch starts beside one that hangs when its first call has waited long enough", () =>
  Effect.gen(function* () {
    const { batches, second, ended } = yield* beside([[1, 2]], { least: 10, millis: 20 })
    yield* second
    expect(batches).toEqual([[0], [1, 2]])
    yield* ended
  }).pipe(Effect.scoped),
)

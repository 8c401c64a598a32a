import { it, expect } from "@effect/vitest"
import * as Batched from "@svc/cluster/store/Batched"
import { Effect, Fiber, Latch } from "effect"

it.effect("a batch takes what waits, in order, up to its number and weight, and one that is too heavy alone", () =>
  Effect.gen(function* () {
    const gate = yield* Latch.make()
    const batches: Array<ReadonlyArray<number>> = []
    const call = yield* Batched.make(
      (items: ReadonlyArray<number>) => {
        batches.push(items)
        return Effect.as(gate.await, items)
      },
      { atOnce: 1, most: 3, heaviest: { weight: 10, of: (item) => item } },
    )
    const answers = yield* Effect.forkChild(
      Effect.forEach([1, 1, 1, 1, 6, 5, 99, 4, 4], (item) => call(item), { concurrency: "unbounded" }),
    )
    yield* Effect.yieldNow
    yield* gate.open
    expect(yield* Fiber.join(answers)).toHaveLength(9)
    expect(batches).toEqual([[1, 1, 1], [1, 6], [5], [99], [4, 4]])
  }).pipe(Effect.scoped),
)

/** Long work that runs in slices between turns of the event loop. */
import { inTurns, joined, sha256 } from "@svc/mail-gateway/mail/SlicedWork"
import { createHash } from "node:crypto"
import { Cause, Effect, Exit, Fiber } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"

const turn = () => new Promise((resume) => setImmediate(resume))

/** Work of which each step takes a millisecond of a stopped clock, and which throws after a number of steps. */
const millisecondSteps = (atMost: number) => {
  const steps = { done: 0 }
  vi.spyOn(performance, "now").mockImplementation(() => steps.done)
  const work = function* (): Generator<void, void, void> {
    while (steps.done < atMost) {
      steps.done++
      yield
    }
    throw new Error("broken")
  }
  return { steps, work }
}

afterEach(() => void vi.restoreAllMocks())

describe("Sliced work", () => {
  it("runs for five milliseconds in each turn of the event loop, and stops when it is interrupted", async () => {
    const { steps, work } = millisecondSteps(Infinity)
    const fiber = Effect.runFork(inTurns(work))
    expect(steps.done).toBe(5)
    await turn()
    expect(steps.done).toBe(10)
    await Effect.runPromise(Fiber.interrupt(fiber))
    const before = steps.done
    await turn()
    await turn()
    expect(steps.done).toBe(before)
  })

  it("fails with the error that a later slice throws", async () => {
    const { work } = millisecondSteps(20)
    const exit = await Effect.runPromise(Effect.exit(Effect.timeout(inTurns(work), "5 seconds")))
    expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toMatchObject({ message: "broken" })
  })

  it("joins and hashes pieces below and above the size of a slice", async () => {
    for (const sizes of [
      [3, 0, 5],
      [300_000, 1, 262_144, 524_289],
    ]) {
      const pieces = sizes.map((size, n) => new Uint8Array(size).map((_, at) => (at * 7 + (at >>> 8) + n) % 251))
      const whole = await Effect.runPromise(joined(pieces))
      expect(Buffer.concat(pieces).equals(whole)).toBe(true)
      expect(Buffer.from(await Effect.runPromise(sha256(whole)))).toEqual(createHash("sha256").update(whole).digest())
    }
  })
})

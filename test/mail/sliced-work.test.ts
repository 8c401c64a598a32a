/** Long work that runs in slices between turns of the event loop. */
import { inTurns, joined, sha256 } from "@svc/mail-gateway/mail/SlicedWork"
import { createHash } from "node:crypto"
import { Cause, Effect, Exit, Fiber } from "effect"
import { describe, expect, it } from "vitest"

describe("Sliced work", () => {
  it("lets the event loop continue, and stops when it is interrupted", async () => {
    let steps = 0
    const endless = function* (): Generator<void, never, void> {
      while (true) {
        steps++
        yield
      }
    }
    const fiber = Effect.runFork(inTurns(endless))
    const begin = performance.now()
    await new Promise((resume) => setImmediate(resume))
    await new Promise((resume) => setImmediate(resume))
    // Two turns take 10 ms; the limit leaves room for a busy machine.
    expect(performance.now() - begin).toBeLessThan(400)
    await Effect.runPromise(Fiber.interrupt(fiber))
    const before = steps
    await new Promise((resume) => setImmediate(resume))
    await new Promise((resume) => setImmediate(resume))
    expect(steps).toBe(before)
  })

  it("fails with the error that a later slice throws", async () => {
    const failing = function* (): Generator<void, void, void> {
      const until = performance.now() + 20
      while (performance.now() < until) yield
      throw new Error("broken")
    }
    const exit = await Effect.runPromise(Effect.exit(Effect.timeout(inTurns(failing), "5 seconds")))
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

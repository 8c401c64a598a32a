/** Callers who wait for the next message of a Mailbox, in the memory of its actor. */
import { Effect, Latch } from "effect"

export const make = () => {
  let latch = Latch.makeUnsafe()
  return {
    /** The next message after this effect began to run. */
    next: Effect.suspend(() => latch.await),
    announce: Effect.sync(() => {
      const waiting = latch
      latch = Latch.makeUnsafe()
      waiting.openUnsafe()
    }),
  }
}

/**
 * Attempts on leased rows. Leasing rows and starting their attempts is one uninterruptible step: an interruption in between
 * would block the rows until their leases expire. An actor that shuts down waits for the step, then for the attempts.
 */
import { Effect, FiberSet, Semaphore } from "effect"
import { Timing } from "../Timing.ts"

export const make = Effect.map(Semaphore.make(1), (turn) => ({
  /** Runs a step that leases rows and starts their attempts. */
  step: <A, E, R>(step: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptible(turn.withPermits(1)(step)),

  /** Waits a limited time for attempts in flight. */
  settled: <A, E>(attempts: FiberSet.FiberSet<A, E>): Effect.Effect<void> =>
    Effect.asVoid(
      Effect.timeoutOption(
        Effect.andThen(turn.withPermits(1)(Effect.void), FiberSet.awaitEmpty(attempts)),
        Timing.settle,
      ),
    ),
}))

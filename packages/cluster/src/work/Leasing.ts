/**
 * Leasing rows and beginning their attempts as one step. An actor that was interrupted between the two would keep the rows
 * from everybody until their lease ends: so the step is not interrupted, and an actor that leaves waits for it before it
 * waits for the attempts.
 */
import { Effect, FiberSet, Semaphore } from "effect"
import { Timing } from "../Timing.ts"

export const make = Effect.map(Semaphore.make(1), (turn) => ({
  /** Runs a step that leases and begins. */
  step: <A, E, R>(step: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptible(turn.withPermits(1)(step)),

  /** Waits a moment for what is under way. */
  settled: <A, E>(attempts: FiberSet.FiberSet<A, E>): Effect.Effect<void> =>
    Effect.asVoid(
      Effect.timeoutOption(
        Effect.andThen(turn.withPermits(1)(Effect.void), FiberSet.awaitEmpty(attempts)),
        Timing.settle,
      ),
    ),
}))

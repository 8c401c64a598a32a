/**
 * Attempts on leased rows. Leasing rows and starting their attempts is one uninterruptible step: an interruption in between
 * would block the rows until their leases expire. An actor that shuts down waits for the step, then for the attempts.
 */
import { Effect, FiberSet, Schedule, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { isTransient } from "../store/Database.ts"
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

/**
 * Records what an attempt did, also if the store is away for a moment, as during its failover. Without the record, the attempt
 * would be made again after its lease. `record` must change nothing if an earlier try was committed and its response lost.
 */
export const recorded = <A, R>(
  record: Effect.Effect<A, SqlError.SqlError, R>,
): Effect.Effect<A, SqlError.SqlError, R> =>
  Effect.retry(Effect.uninterruptible(record), {
    while: isTransient,
    schedule: Schedule.spaced(Timing.recordPause).pipe(Schedule.upTo({ duration: Timing.recordAtMost })),
  })

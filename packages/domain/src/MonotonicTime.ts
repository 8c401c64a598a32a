/**
 * How long something lasts: deadlines, leases and windows that are kept in memory. The time of day is no measure for that,
 * since people and NTP set it, forth and back; what is kept in the store or told to others has the time of day
 * (`Clock.currentTimeMillis`). Both are of the running effect's clock, so a test owns them.
 */
import { Clock, Effect } from "effect"

/** Milliseconds since some moment that stays the same while the process runs; they only grow. */
export const monotonicOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** {@link monotonicOf} the running effect's clock. */
export const monotonicMillis: Effect.Effect<number> = Clock.clockWith((clock) => Effect.succeed(monotonicOf(clock)))

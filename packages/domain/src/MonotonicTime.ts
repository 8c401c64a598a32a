/**
 * Monotonic time for deadlines, leases and windows that are kept in memory. People and NTP set the time of day, so it
 * cannot measure durations; times that are stored or published use `Clock.currentTimeMillis`. Both read the clock of
 * the running effect, so that tests control them.
 */
import { Clock, Effect } from "effect"

/** Returns the milliseconds since a fixed moment of this process. The value never decreases. */
export const monotonicOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Returns {@link monotonicOf} for the clock of the running effect. */
export const monotonicMillis: Effect.Effect<number> = Clock.clockWith((clock) => Effect.succeed(monotonicOf(clock)))

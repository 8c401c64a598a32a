/**
 * Runs the background work of a source, one run at a time. A failure is logged, and the next run starts no earlier than
 * `Timing.busyLookMillis` after the previous one.
 */
import { Cause, Clock, Effect, FiberSet } from "effect"
import { Timing } from "../Timing.ts"

export const make = Effect.gen(function* () {
  const fibers = yield* FiberSet.make<void, unknown>()
  let busy = false
  let notBefore = 0

  /** Whether the pause after the last run is over. A clock that was set back causes no delay. */
  const isOver = (now: number) => notBefore <= now || notBefore > now + Timing.busyLookMillis

  return {
    /** Returns whether a run may start at `now` (milliseconds since 1970). */
    isFree: (now: number) => !busy && isOver(now),

    /** Returns when a run that is due at a time may start; null if none is due. */
    from: (due: Date | null) =>
      Effect.map(Clock.currentTimeMillis, (now) =>
        due === null || isOver(now) ? due : new Date(Math.max(due.getTime(), notBefore)),
      ),

    /** Starts a run. `failure` is the log message if it fails; `changed` runs when it has ended. */
    start: (run: Effect.Effect<void, unknown>, failure: string, changed: Effect.Effect<void>) =>
      Effect.suspend(() => {
        busy = true
        return run.pipe(
          Effect.catchCause((cause) =>
            Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning(failure, cause),
          ),
          Effect.ensuring(
            Effect.flatMap(Clock.currentTimeMillis, (ended) => {
              busy = false
              notBefore = ended + Timing.busyLookMillis
              return changed
            }),
          ),
          FiberSet.run(fibers),
          Effect.as(true),
        )
      }),

    isBusy: () => busy,

    /** Waits a limited time for a run in flight. */
    settle: Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(fibers), Timing.settle)),
  }
})

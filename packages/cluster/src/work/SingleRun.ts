/**
 * A run that a source starts beyond its call, one at a time: what cut it short is logged, and the next one begins no
 * earlier than `Timing.busyLookMillis` after it.
 */
import { Cause, Clock, Effect, FiberSet } from "effect"
import { Timing } from "../Timing.ts"

export const make = Effect.gen(function* () {
  const fibers = yield* FiberSet.make<void, unknown>()
  let busy = false
  let notBefore = 0

  return {
    /** Whether one may begin at `now` (ms since 1970). A clock that was set back does not hold it up. */
    isFree: (now: number) => !busy && (notBefore <= now || notBefore > now + Timing.busyLookMillis),

    /** When one may begin that is due then. */
    from: (due: Date) => new Date(Math.max(due.getTime(), notBefore)),

    /** `cut` is what is logged if it fails; `changed` runs when it has ended. */
    start: (run: Effect.Effect<void, unknown>, cut: string, changed: Effect.Effect<void>) =>
      Effect.suspend(() => {
        busy = true
        return run.pipe(
          Effect.catchCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning(cut, cause))),
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

    /** Waits a moment for what is under way. */
    settle: Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(fibers), Timing.settle)),
  }
})

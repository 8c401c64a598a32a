/**
 * Notifies an idle client of changes. A notification starts a synchronization; any number of notifications during a
 * synchronization start one more after it.
 */
import { Effect, Schedule } from "effect"
import { Timing } from "../../../Timing.ts"

/**
 * Returns the function to call on a notification. `look` synchronizes and returns whether nothing is left to send;
 * otherwise it is repeated.
 */
export const make = (run: (effect: Effect.Effect<void>) => void, look: Effect.Effect<boolean>) => {
  let isLooking = false
  let isNotified = false
  const synchronized: Effect.Effect<void> = Effect.andThen(
    Effect.repeat(look, { until: (isDone) => isDone, schedule: Schedule.spaced(Timing.imapAgain) }),
    Effect.suspend(() => {
      isLooking = isNotified
      isNotified = false
      return isLooking ? synchronized : Effect.void
    }),
  )
  return () => {
    if (isLooking) {
      isNotified = true
      return
    }
    isLooking = true
    run(synchronized)
  }
}

/**
 * Telling an idle client of changes. Nothing waits while there is no word of any: a word begins a look, and one that comes
 * during a look begins another after it, however many come.
 */
import { Effect, Schedule } from "effect"
import { Timing } from "../../../Timing.ts"

/**
 * Answers what to call at a word. `look` answers whether there is nothing left to tell: a client hears of nothing again
 * unless we look again.
 */
export const make = (run: (effect: Effect.Effect<void>) => void, look: Effect.Effect<boolean>) => {
  let isLooking = false
  let isNews = false
  const told: Effect.Effect<void> = Effect.andThen(
    Effect.repeat(look, { until: (isTold) => isTold, schedule: Schedule.spaced(Timing.imapAgain) }),
    Effect.suspend(() => {
      isLooking = isNews
      isNews = false
      return isLooking ? told : Effect.void
    }),
  )
  return () => {
    if (isLooking) {
      isNews = true
      return
    }
    isLooking = true
    run(told)
  }
}

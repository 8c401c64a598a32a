/**
 * A deadline for what waits on the database, by the machine's own clock: a server that neither answers nor closes is no
 * matter of the program's time. One fiber and one timer, where the library's time-out takes two fibers.
 */
import { type Context, Effect, Exit } from "effect"

/** The effect's outcome, or that of `late` once `millis` have passed; then the effect is interrupted and not waited for. */
export const within = <A, E, R, A2, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  late: () => Effect.Effect<A2, E2>,
): Effect.Effect<A | A2, E | E2, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.callback<A | A2, E | E2>((resume) => {
      const fiber = Effect.runForkWith(context)(effect)
      const timer = setTimeout(() => {
        resume(late())
        fiber.interruptUnsafe()
      }, millis)
      fiber.addObserver((exit) => {
        clearTimeout(timer)
        resume(Exit.isSuccess(exit) ? Effect.succeed(exit.value) : Effect.failCause(exit.cause))
      })
      return Effect.sync(() => {
        clearTimeout(timer)
        fiber.interruptUnsafe()
      })
    }),
  )

/** A while by the machine's clock, for what other sessions of the database have to end first. */
export const pause = (millis: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

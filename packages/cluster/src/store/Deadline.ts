/**
 * Deadlines for calls of the database, measured by the machine's clock and not by the `Clock` service, which tests set. A deadline
 * costs one fiber and one timer; the timeout of the library costs two fibers.
 */
import { type Context, Effect, Exit } from "effect"

/** Runs an effect, or `late` after `millis`. The effect is then interrupted, without waiting for it to end. */
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

/** Sleeps by the machine's clock, while other sessions of the database finish. */
export const pause = (millis: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

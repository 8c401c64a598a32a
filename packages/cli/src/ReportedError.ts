/**
 * Errors of operator commands. Expected errors are printed as a sentence that says what to do; only unexpected ones are
 * shown with a stack trace.
 */
import { type Cause, Effect, Schema } from "effect"

/** The error was already printed. */
class ReportedError extends Schema.TaggedError<ReportedError>()("ReportedError", {}) {}

export const reportedError = <A, E, R>(command: Effect.Effect<A, E, R>): Effect.Effect<A, ReportedError, R> =>
  Effect.catchCause(command, (cause) =>
    Effect.gen(function* () {
      const { sentence } = yield* Effect.promise(() => import("./serve/OperatorErrors.ts"))
      const words = sentence(cause, {})
      if (words === undefined) return yield* Effect.failCause(cause as Cause.Cause<never>)
      yield* Effect.sync(() => process.stderr.write(`svc: ${words}\n`))
      return yield* new ReportedError({})
    }),
  )

/**
 * Logs when a pool can no longer connect to the database and when it can again, once each for any number of failed
 * statements. A pool that never connected logs nothing, because the start fails with its own message.
 */
import { Effect, References } from "effect"
import type { SqlError } from "effect/sql"

export interface Reachability {
  /** A new connection works. */
  readonly reached: Effect.Effect<void>
  /** A new connection could not be opened. */
  readonly failed: (error: SqlError.SqlError) => Effect.Effect<void>
}

const messageOf = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const inner = messageOf(Reflect.get(value, "cause"))
  if (inner !== undefined) return inner
  // If several addresses refuse the connection, Node's error has a code and no message.
  const [message, code] = [Reflect.get(value, "message"), Reflect.get(value, "code")]
  return [message, code].find((text): text is string => typeof text === "string" && text !== "")
}

/** Logs a warning without the annotations of the statement that failed. */
const warn = (pool: string, message: string) =>
  Effect.provideService(Effect.logWarning(message), References.CurrentLogAnnotations, { pool })

export const make = (pool: string): Reachability => {
  let state: "new" | "up" | "lost" = "new"
  let lostAt = 0
  return {
    reached: Effect.suspend(() => {
      const before = state
      state = "up"
      return before === "lost"
        ? warn(
            pool,
            `The pool ${pool} can connect to the database again, after ${((performance.now() - lostAt) / 1000).toFixed(1)} s.`,
          )
        : Effect.void
    }),
    failed: ({ reason }) =>
      Effect.suspend(() => {
        if (state !== "up") return Effect.void
        state = "lost"
        lostAt = performance.now()
        const why = messageOf(reason.cause) ?? reason.message ?? "no reason given"
        return warn(pool, `The pool ${pool} cannot connect to the database: ${why}.`)
      }),
  }
}

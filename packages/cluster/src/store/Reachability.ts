/**
 * Whether a pool can connect to the database. Operators read one warning when it no longer can and one when it can again,
 * however many statements fail in between. A pool that never connected reports nothing: then the start fails with a
 * sentence of its own.
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
  // Of several addresses that refuse, Node says nothing but the code.
  const [message, code] = [Reflect.get(value, "message"), Reflect.get(value, "code")]
  return [message, code].find((one): one is string => typeof one === "string" && one !== "")
}

/** Whose statement happened to find out is of no interest. */
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
            `The database answers the pool ${pool} again, after ${((performance.now() - lostAt) / 1000).toFixed(1)} s.`,
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

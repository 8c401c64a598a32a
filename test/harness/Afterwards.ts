/** Two writes of which the second has to wait until the first has committed. */
import { Writes } from "@svc/cluster/store/Database"
import { Deferred, Effect, Fiber } from "effect"
import { waitUntil } from "./Actors.ts"
import { rows } from "./Stores.ts"

const lockWaits = rows(
  (reads) => reads`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
)

/** Runs `second`, which causes a write elsewhere, and commits `first` only when that write waits for it. */
export const whenWaiting = Effect.fnUntraced(function* (
  first: Effect.Effect<unknown, unknown>,
  second: Effect.Effect<unknown, unknown>,
) {
  const waits = waitUntil(lockWaits, (found) => found.length > 0, 0)
  yield* (yield* Writes).withTransaction(Effect.all([first, second, waits]))
})

/** Commits `first` only when `second` waits for it, and returns the outcome of `second`. Fails if `second` does not wait. */
export const afterwards = Effect.fnUntraced(function* <A, E, R>(
  first: Effect.Effect<unknown, unknown>,
  second: Effect.Effect<A, E, R>,
) {
  const sql = yield* Writes
  const [made, waited] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const writing = yield* Effect.forkChild(
    sql.withTransaction(
      Effect.andThen(first, Effect.andThen(Deferred.succeed(made, undefined), Deferred.await(waited))),
    ),
  )
  yield* Deferred.await(made)
  const waiting = yield* Effect.forkChild(second)
  yield* waitUntil(lockWaits, (waits) => waits.length > 0 || waiting.pollUnsafe() !== undefined, 0)
  const hasWaited = waiting.pollUnsafe() === undefined
  yield* Deferred.succeed(waited, undefined)
  yield* Fiber.join(writing)
  const outcome = yield* Fiber.join(waiting)
  return hasWaited ? outcome : yield* Effect.die(new Error("The second write did not wait for the first one."))
})

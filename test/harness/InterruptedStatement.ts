/**
 * Interrupts statements before their commit: a table is locked and the waiting connection is closed, as by the end of a
 * process. The rest of the store keeps working.
 */
import { Unhurried } from "@svc/cluster/store/Database"
import { Deferred, type Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { patience } from "./Eventually.ts"

type Lock = "exclusive" | "access exclusive"

/** Runs the effect while the table is locked against changes, and against reads if the lock is `access exclusive`. */
export const whileLocked = <A, E, R>(table: string, effect: Effect.Effect<A, E, R>, lock: Lock = "exclusive") =>
  Effect.gen(function* () {
    const sql = yield* Unhurried
    const held = yield* Deferred.make<void>()
    const over = yield* Deferred.make<void>()
    const holder = yield* Effect.forkChild(
      sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`lock table ${sql(table)} in ${sql.literal(lock)} mode`
          yield* Deferred.succeed(held, undefined)
          yield* Deferred.await(over)
        }),
      ),
    )
    yield* Deferred.await(held)
    return yield* Effect.ensuring(
      effect,
      Effect.andThen(Deferred.succeed(over, undefined), Effect.exit(Fiber.join(holder))),
    )
  })

/**
 * Waits until a connection waits for the table, closes all such connections, and returns their number. Work that timers
 * start is woken by advancing the clock by `step`. A fiber may begin to sleep only after the clock was advanced, so the
 * clock is advanced again after a second of real time.
 */
const closeWaiting = Effect.fnUntraced(function* (table: string, step: Duration.Input | undefined) {
  const sql = yield* Unhurried
  const deadline = Date.now() + patience
  let next = Date.now()
  while (true) {
    const closed = yield* sql`
      select pg_terminate_backend(pid) from pg_locks
      where relation = ${table}::regclass and not granted
        and database = (select oid from pg_database where datname = current_database())`
    if (closed.length > 0) return closed.length
    if (Date.now() > deadline) return yield* Effect.die(new Error(`nothing waits for ${table}`))
    const isStalled = step !== undefined && Date.now() >= next
    if (isStalled) next = Date.now() + 1_000
    // The fiber that should wait may have to be woken by the test's clock.
    yield* TestClock.adjust(isStalled ? step : 0)
  }
})

/** Interrupts the statement of an effect at the locked table, and returns the effect's outcome. */
export const interruptAtLock = <A, E, R>(
  asking: Effect.Effect<A, E, R>,
  table = "event",
  { lock, step }: { readonly lock?: Lock; readonly step?: Duration.Input } = {},
) =>
  whileLocked(
    table,
    Effect.gen(function* () {
      const call = yield* Effect.forkChild(Effect.result(asking), { startImmediately: true })
      yield* closeWaiting(table, step)
      return yield* Fiber.join(call)
    }),
    lock,
  )

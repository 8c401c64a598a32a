/** Open transactions that delay lists of Events, in any database of the PostgreSQL cluster, as reported by the metric and the doctor. */
import { writers } from "@svc/cli/doctor/Store"
import * as Database from "@svc/cluster/store/Database"
import { makeHeld } from "@svc/cluster/store/Horizon"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Latch, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { connection, databaseLayer } from "../harness/Database.ts"

/** Connects to another database of the same PostgreSQL cluster, optionally as another role. */
const nextDoor = (role?: Pick<Database.ConnectionSettings, "username" | "password">) =>
  Effect.map(
    Layer.build(Layer.fresh(Database.layer({ ...connection(), ...role, database: "postgres" }))),
    Context.get(Database.Unhurried),
  )

/** Opens a transaction in that database that stays open. Returns its process id and an effect that ends it. */
const opened = Effect.fnUntraced(function* (writes: boolean) {
  const sql = yield* nextDoor()
  const [written, end] = [yield* Latch.make(), yield* Latch.make()]
  let pid = 0
  const fiber = yield* sql
    .withTransaction(
      Effect.gen(function* () {
        const xid = writes ? sql`pg_current_xact_id()::text` : sql`null`
        const [row] = yield* sql<{ pid: number }>`select pg_backend_pid() as pid, ${xid} as xid`
        pid = row!.pid
        yield* written.open
        yield* end.await
      }),
    )
    .pipe(Effect.forkScoped)
  yield* written.await
  // A later transaction id, so that the open transaction is behind it.
  yield* (yield* nextDoor())`select pg_current_xact_id()::text as xid`
  return { pid, end: Effect.andThen(end.open, Fiber.await(fiber)) }
})

const openWriter = opened(true)

/** Polls, since other tests in the same PostgreSQL cluster also write for short times. */
const until = <A, E, R>(read: Effect.Effect<A, E, R>, holds: (found: A) => boolean) =>
  Effect.repeat(read, { until: holds, times: 2000 })

layer(databaseLayer, { excludeTestServices: true })("a transaction", (it) => {
  it.effect("with a failed statement fails, although the failure was handled inside", () =>
    Effect.gen(function* () {
      const sql = yield* Database.Writes
      const failed = yield* Effect.flip(sql.withTransaction(Effect.ignore(sql`select 1 / 0`)))
      expect(failed.reason.message).toBe("COMMIT rolled back a failed transaction")
    }),
  )
})

layer(databaseLayer, { excludeTestServices: true })("a transaction that writes and stays open", (it) => {
  it.effect("in another database is reported until it ends", () =>
    Effect.gen(function* () {
      const sql = yield* Database.Reads
      const held = makeHeld(sql)
      const { end } = yield* openWriter
      const first = yield* held
      expect(first).toBeGreaterThan(0)
      yield* end
      expect(yield* until(held, (seconds) => seconds === 0)).toBe(0)
    }),
  )

  it.effect("is reported by the doctor if it is long, before younger ones and those that only read", () =>
    Effect.gen(function* () {
      const sql = yield* Database.Reads
      const reader = yield* opened(false)
      const { pid, end } = yield* openWriter
      const younger = yield* openWriter
      const found = yield* until(writers(sql, 0), ({ detail }) => detail.includes(`process ${pid} `))
      expect(found).toMatchObject({ status: "warn", remedy: expect.stringContaining(`pg_terminate_backend(${pid})`) })
      expect(found.detail).toMatch(/svc:Unhurried, \w+, postgres\) has been writing for \d+ s/)
      expect((yield* writers(sql)).status).toBe("ok")
      yield* Effect.all([reader.end, end, younger.end])
    }),
  )
})

layer(databaseLayer)("a transaction whose start time is not visible to the service", (it) => {
  it.effect("counts from when it was first observed", () =>
    Effect.gen(function* () {
      const admin = yield* TestClock.withLive(nextDoor())
      const username = `watcher_${process.pid}`
      yield* Effect.acquireRelease(admin.unsafe(`create role ${username} login password 'of-a-test'`), () =>
        Effect.orDie(admin.unsafe(`drop role ${username}`)),
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { end } = yield* TestClock.withLive(openWriter)
          const held = makeHeld(yield* TestClock.withLive(nextDoor({ username, password: Redacted.make("of-a-test") })))
          const later = Effect.andThen(TestClock.adjust("90 seconds"), held)
          expect(yield* until(later, (seconds) => seconds === 90)).toBe(90)
          yield* TestClock.withLive(end)
          expect(yield* until(later, (seconds) => seconds === 0)).toBe(0)
        }),
      )
    }),
  )
})

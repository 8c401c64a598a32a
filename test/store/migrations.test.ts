/** Creating and migrating the schema: by several processes concurrently, and after an interrupted start. */
import * as Stores from "@svc/cluster/store/Database"
import { migrate, waiting, isOlder, refuseOlderVersion, requireVersion } from "@svc/cluster/store/Migrations"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { databaseLayer } from "../harness/Database.ts"

/** Resets the database to its state before the first start. */
const emptied = Effect.gen(function* () {
  const sql = yield* Stores.Unhurried
  yield* sql.unsafe("drop schema public cascade")
  yield* sql.unsafe("create schema public")
})

const applied = Effect.flatMap(
  Stores.Unhurried,
  (sql) => sql<{ migration_id: number }>`select migration_id from svc_migrations order by migration_id`,
)
const tables = Effect.flatMap(
  Stores.Unhurried,
  (sql) => sql`select 1 from information_schema.tables where table_schema = 'public'`,
)

const indexes = Effect.flatMap(
  Stores.Unhurried,
  (sql) => sql<{ line: string }>`
    select (case when i.indisunique then 'unique ' else '' end)
      || substring(pg_get_indexdef(i.indexrelid) from position(' public.' in pg_get_indexdef(i.indexrelid)) + 8) as line
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'public'::regnamespace and not c.relispartition
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid)`,
)

it.live("migrations run once when several processes start together, and create the recorded indexes", () =>
  Effect.gen(function* () {
    const before = yield* applied
    expect(before.length).toBeGreaterThan(0)
    yield* emptied
    yield* Effect.all([migrate, migrate, migrate], { concurrency: "unbounded" })
    expect(yield* applied).toEqual(before)
    // Only a large table would show that an index is missing. `--update=all` writes the file anew.
    const lines = (yield* indexes).map(({ line }) => line).toSorted()
    yield* Effect.promise(() => expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("indexes.txt"))
  }).pipe(Effect.provide(databaseLayer)),
)

it.live("a failed migration is rolled back, and the next start runs all of it", () =>
  Effect.gen(function* () {
    const before = yield* applied
    yield* emptied
    const sql = yield* Stores.Unhurried
    // The third migration fails; the earlier ones ran in the same transaction.
    yield* sql.unsafe("create table public_limit (n int)")
    expect(Exit.isFailure(yield* Effect.exit(migrate))).toBe(true)
    expect(yield* tables).toHaveLength(1)
    yield* sql.unsafe("drop table public_limit")
    yield* migrate
    expect(yield* applied).toEqual(before)
  }).pipe(Effect.provide(databaseLayer)),
)

it.live("a migration that waits for a lock rolls back, and succeeds once the lock is released", () =>
  Effect.gen(function* () {
    const before = yield* applied
    yield* emptied
    const writes = yield* Effect.service(Stores.Writes)
    let logged = 0
    const counting = Logger.layer([Logger.make(() => void logged++)])
    let running: Fiber.Fiber<unknown, unknown> | undefined
    // Another transaction creates a table that the third migration also creates, and rolls back in the end.
    const held = writes.withTransaction(
      Effect.gen(function* () {
        yield* writes`create table public_limit (n int)`
        running = yield* Effect.forkDetach(Effect.provide(migrate, counting))
        // The waiting migration rolls back and releases all its locks, so that no other statement waits for it.
        while (logged === 0) yield* Effect.sleep("20 millis")
        return yield* Effect.fail("taken back")
      }),
    )
    expect(yield* Effect.flip(held)).toBe("taken back")
    yield* Fiber.join(running!)
    expect(yield* applied).toEqual(before)
  }).pipe(Effect.provide(databaseLayer)),
)

it.live("pending migrations are listed by name until they are applied", () =>
  Effect.gen(function* () {
    expect(yield* waiting).toEqual({ missing: [], names: [], unknown: [] })
    yield* emptied
    const { missing, names } = yield* waiting
    expect(names).toContain("0001_baseline")
    expect(missing).toEqual(names.map((name) => Number(name.slice(0, 4))))
    yield* migrate
    expect((yield* waiting).names).toEqual([])
  }).pipe(Effect.provide(databaseLayer)),
)

it.live("a program older than the store allows is refused with a message; the same version and later ones run", () =>
  Effect.gen(function* () {
    const sql = yield* Stores.Unhurried
    yield* refuseOlderVersion(sql)
    const require = (version: string) => Effect.provideService(requireVersion(version), SqlClient.SqlClient, sql)
    yield* require("0.3.0")
    // The minimum version is never lowered by any migration.
    yield* require("0.2.0")
    const refused = yield* Effect.flip(refuseOlderVersion(sql, "0.2.9"))
    expect(refused).toMatchObject({
      _tag: "StoreUnfit",
      message: expect.stringMatching(
        /^The database was migrated for version 0\.3\.0 and later, and this is 0\.2\.9: run/,
      ),
    })
    for (const version of ["0.3.0", "0.3.1", "0.10.0", "1.0.0"]) yield* refuseOlderVersion(sql, version)
    // An outdated program is rejected before it changes anything.
    yield* sql.unsafe("delete from svc_migrations")
    expect(yield* Effect.flip(migrate)).toMatchObject({ _tag: "StoreUnfit" })
  }).pipe(Effect.provide(databaseLayer)),
)

it("versions are compared by their numbers", () => {
  expect(isOlder("0.9.0", "0.10.0")).toBe(true)
  expect(isOlder("0.10.0", "0.9.9")).toBe(false)
  expect(isOlder("1.2.3", "1.2.3")).toBe(false)
  expect(isOlder("1.2.3-rc.1", "1.2.4")).toBe(true)
})

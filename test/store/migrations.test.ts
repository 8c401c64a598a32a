/** Bringing the schema up to date, by several processes at once and after one that was cut short. */
import * as Stores from "@svc/cluster/store/Database"
import { migrate } from "@svc/cluster/store/Migrations"
import { expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { databaseLayer } from "../harness/Database.ts"

/** A database as it is on the first start. */
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

it.live("migrations run once, of processes that start at once", () =>
  Effect.gen(function* () {
    const before = yield* applied
    expect(before.length).toBeGreaterThan(0)
    yield* emptied
    yield* Effect.all([migrate, migrate, migrate], { concurrency: "unbounded" })
    expect(yield* applied).toEqual(before)
  }).pipe(Effect.provide(databaseLayer)),
)

it.live("a migration that is cut short leaves nothing, and the next start does all of it", () =>
  Effect.gen(function* () {
    const before = yield* applied
    yield* emptied
    const sql = yield* Stores.Unhurried
    // The third of them fails: what the others made is of the same transaction.
    yield* sql.unsafe("create table public_limit (n int)")
    expect(Exit.isFailure(yield* Effect.exit(migrate))).toBe(true)
    expect(yield* tables).toHaveLength(1)
    yield* sql.unsafe("drop table public_limit")
    yield* migrate
    expect(yield* applied).toEqual(before)
  }).pipe(Effect.provide(databaseLayer)),
)

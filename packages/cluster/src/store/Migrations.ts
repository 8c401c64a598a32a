/**
 * Migrates the schema, one process at a time. Migrations only add, so that two versions of the program can run side by side during
 * a rolling restart. A migration does not wait long for a lock, since later statements would queue behind it: it rolls back and
 * retries.
 */
import { apiVersion } from "@svc/domain/Version"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schedule } from "effect"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import { type Sql, Unhurried } from "./Database.ts"
import { Timing } from "../Timing.ts"
import { refuseUnfit } from "./ServerFitness.ts"
import { refusePooler, StoreUnfit } from "./Sessions.ts"
import { account } from "./schema/account.ts"
import { audit } from "./schema/audit.ts"
import { connectors } from "./schema/connectors.ts"
import { events } from "./schema/events.ts"
import { identity } from "./schema/identity.ts"
import { mail } from "./schema/mail.ts"
import { oauth } from "./schema/oauth.ts"
import { proof } from "./schema/proof.ts"
import { search } from "./schema/search.ts"
import { sending } from "./schema/sending.ts"
import { service } from "./schema/service.ts"
import { tunnel } from "./schema/tunnel.ts"
import { vault } from "./schema/vault.ts"

/** The schema of the first release. Later versions append migrations. */
const baseline = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const areas = [
    account,
    identity,
    mail,
    search,
    sending,
    events,
    tunnel,
    vault,
    connectors,
    oauth,
    proof,
    audit,
    service,
  ]
  for (const statement of areas.flat()) yield* sql.unsafe(statement)
  yield* requireVersion("0.1.0")
})

const migrations = { "0001_baseline": baseline }

/** Any constant that no other user of the database takes: "svc" in ASCII. */
const lockKey = 0x73_76_63

/** Whether a statement, or a migration that the library ran, timed out waiting for a lock. */
const isLocked = (error: unknown): boolean =>
  SqlError.isSqlError(error)
    ? error.reason._tag === "LockTimeoutError"
    : error instanceof Migrator.MigrationError && isLocked(error.cause)

/** A lock was not granted, for example because of a backup, a long query or an open transaction. */
const busy = new StoreUnfit({
  message:
    "The database cannot be migrated because other statements hold locks on its tables. Look for long transactions in pg_stat_activity, then start again.",
})

/** Fails for a database from before the baseline. Versions before the baseline were never released and cannot be migrated. */
const refuseDevelopment = Effect.fnUntraced(function* (sql: Sql) {
  const [there] = yield* sql<{ found: boolean }>`select to_regclass('svc_migrations') is not null as found`
  if (there?.found !== true) return
  const [first] = yield* sql<{ name: string }>`select name from svc_migrations where migration_id = 1`
  if (first === undefined || first.name === "baseline") return
  return yield* new StoreUnfit({
    message:
      "This database was made by a development version, whose schema this version cannot migrate. Export its accounts with that version (Settings, Export), then start this version with an empty database or another SVC_DATA_DIR.",
  })
})

/** Runs the pending migrations and returns them. */
const run = Effect.fnUntraced(function* (wanted: Partial<typeof migrations>) {
  const sql = yield* Unhurried
  const all = Migrator.make({})({ loader: Migrator.fromRecord(wanted), table: "svc_migrations" }).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.provideService(PgClient.PgClient, sql),
  )
  const once = sql.withTransaction(
    Effect.gen(function* () {
      // The library locks its table, but two processes may both be about to create that table.
      yield* sql`select pg_advisory_xact_lock(${lockKey})`
      yield* refuseDevelopment(sql)
      yield* refuseOlderVersion(sql)
      yield* sql`select set_config('lock_timeout', ${String(Timing.migrationLockMillis)}, true)`
      return yield* all
    }),
  )
  return yield* once.pipe(
    Effect.tapError((error) =>
      isLocked(error) ? Effect.logWarning("A migration waits for statements that hold its tables") : Effect.void,
    ),
    Effect.retry({ while: isLocked, schedule: Schedule.spaced(Timing.migrationRetry), times: Timing.migrationTries }),
    Effect.catchIf(isLocked, () => Effect.fail(busy)),
  )
})

export const migrate = run(migrations)

const numberOf = (name: string) => Number(name.slice(0, 4))

/** Migrates to the schema of these migrations. Returns the numbers that this program does not know; then it changes nothing. */
export const migrateTo = Effect.fnUntraced(function* (numbers: ReadonlyArray<number>) {
  const known = new Set(Object.keys(migrations).map(numberOf))
  const unknown = numbers.filter((number) => !known.has(number))
  if (unknown.length > 0) return unknown
  yield* run(Object.fromEntries(Object.entries(migrations).filter(([name]) => numbers.includes(numberOf(name)))))
  return []
})

/** Returns the pending migrations, and the migrations in the database that this program does not know. */
export const waiting = Effect.gen(function* () {
  const sql = yield* Unhurried
  const [there] = yield* sql<{ found: boolean }>`select to_regclass('svc_migrations') is not null as found`
  const rows = there?.found === true ? yield* sql<{ id: number }>`select migration_id as id from svc_migrations` : []
  const done = new Set(rows.map(({ id }) => id))
  const names = Object.keys(migrations).filter((name) => !done.has(numberOf(name)))
  const known = Object.keys(migrations).map(numberOf)
  return { missing: names.map(numberOf), names, unknown: [...done].filter((id) => !known.includes(id)) }
})

/** Refuses an unsuitable database before anything is changed in it. */
export const refuse = Effect.gen(function* () {
  yield* refusePooler
  yield* refuseUnfit
  yield* refuseDevelopment(yield* Unhurried)
})

export const layer = Layer.effectDiscard(Effect.andThen(refuse, migrate))

const numbers = (version: string) => version.split(/[.+-]/, 3).map(Number)

/** Returns whether the first version is older than the second (major, minor, patch). */
export const isOlder = (version: string, other: string): boolean => {
  const [mine, theirs] = [numbers(version), numbers(other)]
  const at = mine.findIndex((number, place) => number !== theirs[place])
  return at >= 0 && mine[at]! < theirs[at]!
}

/**
 * Raises the oldest version of the program that may use the database, and never lowers it. Migrations usually only add,
 * so a downgrade by one release is safe. A migration that removes something which older versions need calls this, and
 * older versions then refuse to start with an explanation.
 */
export const requireVersion = Effect.fnUntraced(function* (version: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ oldest_program: string }>`select oldest_program from svc_schema`
  if (row !== undefined && !isOlder(row.oldest_program, version)) return
  yield* sql`insert into svc_schema (oldest_program) values (${version})
    on conflict (id) do update set oldest_program = excluded.oldest_program`
})

/** Fails if this program is older than the minimum version. */
export const refuseOlderVersion = Effect.fnUntraced(function* (sql: Sql, program: string = apiVersion) {
  const [there] = yield* sql<{ found: boolean }>`select to_regclass('svc_schema') is not null as found`
  if (there?.found !== true) return
  const [row] = yield* sql<{ oldest_program: string }>`select oldest_program from svc_schema`
  if (row === undefined || !isOlder(program, row.oldest_program)) return
  return yield* new StoreUnfit({
    message: `The database was migrated for version ${row.oldest_program} and later, and this is ${program}: run ${row.oldest_program} or a later one, or restore a backup of this version.`,
  })
})

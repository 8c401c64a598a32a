/**
 * Checks the database: whether it meets the requirements, whether it belongs to the service, and when it was last
 * backed up.
 */
import { existsSync } from "node:fs"
import * as path from "node:path"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { type Sql, Unhurried } from "@svc/cluster/store/Database"
import * as Database from "@svc/cluster/store/Database"
import { oldestWriter } from "@svc/cluster/store/Horizon"
import { waiting } from "@svc/cluster/store/Migrations"
import * as ServerFitness from "@svc/cluster/store/ServerFitness"
import { refusePooler } from "@svc/cluster/store/Sessions"
import { Effect, Option } from "effect"
import * as BackupLocation from "../backup/BackupLocation.ts"
import { sentence } from "../serve/OperatorErrors.ts"
import type { Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("store")

export const server = Effect.fnUntraced(function* (sql: Sql, isEmbedded: boolean) {
  const facts = yield* ServerFitness.look(sql)
  const [row] = yield* sql<{ fsync: string; now: number }>`
    select current_setting('fsync') as fsync, extract(epoch from clock_timestamp())::float8 as now`
  const { fsync, now } = row!
  const apart = Math.abs(now - Date.now() / 1000)
  const faults = ServerFitness.faultsOf(facts)
  const fine = (name: string, detail: string) =>
    faults.some((fault) => fault.name === name) ? [] : [found(name, "ok", detail)]
  const processes = Math.floor((facts.connections - ServerFitness.reserve) / Database.connectionsPerProcess)
  return [
    ...faults.map(({ name, detail, remedy }) =>
      found(name, "fail", detail, `${remedy[0]!.toUpperCase()}${remedy.slice(1)}.`),
    ),
    ...fine("version", `PostgreSQL ${ServerFitness.majorOf(facts)}.${facts.version % 10_000}`),
    ...fine(
      "connections",
      `${facts.connections}, which carry ${Math.max(1, processes)} process${processes > 1 ? "es" : ""}`,
    ),
    fsync === "on"
      ? found("durability", "ok", "fsync is on")
      : found("durability", "fail", "fsync is off: acknowledged writes are lost if the machine crashes", "Turn it on."),
    ...(isEmbedded
      ? []
      : [
          apart > 2
            ? found(
                "clock",
                "warn",
                `the database's clock differs by ${apart.toFixed(1)} s`,
                "Synchronise both clocks (NTP): tokens and signatures depend on the time.",
              )
            : found("clock", "ok", "same as the database's"),
        ]),
  ]
})

/** No write of the service takes this long. */
const longSeconds = 60

/**
 * Finds long write transactions, which delay readers of Events and audit records; `SvcEventsHeld` alerts on them while
 * the service runs.
 */
export const writers = Effect.fnUntraced(function* (sql: Sql, longer = longSeconds) {
  const writer = yield* oldestWriter(sql)
  if (writer === undefined) return found("writers", "ok", "no long-running transaction")
  const { pid, user, database, program, seconds } = writer
  const who = `${pid === null ? "a prepared transaction" : `process ${pid}`} (${[program, user, database].filter((one) => one !== null && one !== "").join(", ")})`
  if (seconds === null) {
    return found(
      "writers",
      "ok",
      `${who} is writing, but its start time is not visible (grant pg_read_all_stats to the service's role)`,
    )
  }
  return seconds < longer
    ? found("writers", "ok", "no long-running transaction")
    : found(
        "writers",
        "warn",
        `${who} has been writing for ${Math.round(seconds)} s: lists and streams of Events and audit records wait for it`,
        pid === null
          ? `rollback prepared '${program}', in ${database}`
          : `Let it finish, or run: select pg_terminate_backend(${pid})`,
      )
})

export const schema = Effect.fnUntraced(function* () {
  const { missing, unknown } = yield* waiting
  if (unknown.length > 0) {
    return found(
      "schema",
      "warn",
      `has migrations of a later version (${unknown.join(", ")})`,
      "Upgrade this one soon.",
    )
  }
  return missing.length === 0
    ? found("schema", "ok", "up to date")
    : found("schema", "ok", `${missing.length} migrations are pending and run at the next start`)
})

export const keys = Effect.fnUntraced(function* (sql: Sql, settings: Settings) {
  const [there] = yield* sql<{ found: boolean }>`select to_regclass('sealing_canary') is not null as found`
  const [canary] =
    there?.found === true ? yield* sql<{ sealed: Uint8Array }>`select sealed from sealing_canary where id = 1` : []
  if (canary === undefined) return found("sealing", "ok", "nothing is sealed yet")
  const { name, keys: given } = yield* BackupLocation.masterKeys(settings)
  const wrong = found(
    "sealing",
    "fail",
    `${name} does not match the database`,
    "Set the key with which the database was written.",
  )
  return yield* Effect.flatMap(Sealing, ({ openCanary }) => openCanary(canary.sealed)).pipe(
    Effect.as(found("sealing", "ok", `${name} matches the database`)),
    Effect.orElseSucceed(() => wrong),
    Effect.provide(Sealing.layer(given)),
  )
})

const dayMillis = 24 * 3600 * 1000

export const backup = Effect.fnUntraced(function* (sql: Sql, { environment }: Settings) {
  const [there] = yield* sql<{ found: boolean }>`select to_regclass('backup') is not null as found`
  const [last] = there?.found === true ? yield* sql<{ at: Date | null }>`select max(finished_at) as at from backup` : []
  const at = last?.at ?? null
  if (at !== null && Date.now() - at.getTime() < 1.1 * dayMillis) return found("backup", "ok", at.toISOString())
  const detail = at === null ? "no backup" : `the latest backup is from ${at.toISOString()}`
  return environment === "development"
    ? found("backup", "ok", detail)
    : found("backup", "warn", detail, "Run `svc backup --keep 7 <folder>` daily, and `svc restore --verify` weekly.")
})

const looked = (settings: Settings, isEmbedded: boolean) =>
  Effect.gen(function* () {
    const sql = yield* Unhurried
    const pooled = yield* Effect.result(refusePooler)
    return [
      ...(yield* server(sql, isEmbedded)),
      ...(pooled._tag === "Failure"
        ? [found("sessions", "fail", pooled.failure.message, "Set DATABASE_URL to PostgreSQL itself.")]
        : []),
      yield* writers(sql),
      yield* schema(),
      yield* keys(sql, settings),
      ...(isEmbedded ? [yield* backup(sql, settings)] : []),
    ]
  })

export const findings = (settings: Settings): Effect.Effect<ReadonlyArray<Finding.Finding>> => {
  const { databaseUrl, dataDirectory } = settings
  const store = Option.match(databaseUrl, {
    onSome: (url) => looked(settings, false).pipe(Effect.provide(Database.layer({ url }))),
    onNone: () =>
      // The home of a database is made with its directory, and a check makes nothing.
      existsSync(dataDirectory) && existsSync(path.join(EmbeddedPostgres.homeOf(dataDirectory), "data"))
        ? Effect.flatMap(EmbeddedPostgres.open({ directory: dataDirectory }), ({ connection }) =>
            looked(settings, true).pipe(Effect.provide(Database.layer(connection))),
          )
        : Effect.succeed([found("database", "ok", "created at the first start")]),
  })
  return store.pipe(
    Effect.scoped,
    Effect.catchCause((cause) =>
      Effect.succeed([
        found(
          "database",
          "fail",
          sentence(cause, {}) ?? "cannot be checked",
          "Check PostgreSQL's log, or correct DATABASE_URL.",
        ),
      ]),
    ),
  )
}

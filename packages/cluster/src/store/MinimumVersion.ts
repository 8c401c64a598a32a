/**
 * The oldest version of the program that may use the database. Migrations usually only add, so a downgrade by one release
 * is safe. A migration that removes something which older versions need raises the minimum version, and older versions
 * then refuse to start with an explanation.
 */
import { apiVersion } from "@svc/domain/Version"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Sql } from "./Database.ts"
import { StoreUnfit } from "./Sessions.ts"

const numbers = (version: string) => version.split(/[.+-]/, 3).map(Number)

/** Returns whether the first version is older than the second (major, minor, patch). */
export const isOlder = (version: string, other: string): boolean => {
  const [mine, theirs] = [numbers(version), numbers(other)]
  const at = mine.findIndex((number, place) => number !== theirs[place])
  return at >= 0 && mine[at]! < theirs[at]!
}

/** Raises the minimum version in a migration. Never lowers it. */
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

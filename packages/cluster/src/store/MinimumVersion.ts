/**
 * The oldest program that may run over the store. Migrations only add, and a program reads what the one before it wrote, so
 * going back by one release is always safe. A migration that takes away what an older program stands on names the version
 * from which on programs do without it; an older one then refuses to start, in words, and nothing is lost.
 */
import { apiVersion } from "@svc/domain/Version"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Sql } from "./Database.ts"
import { StoreUnfit } from "./Sessions.ts"

const numbers = (version: string) => version.split(/[.+-]/, 3).map(Number)

/** Whether the first version came before the second (major, minor, patch). */
export const isOlder = (one: string, other: string): boolean => {
  const [mine, theirs] = [numbers(one), numbers(other)]
  const at = mine.findIndex((number, place) => number !== theirs[place])
  return at >= 0 && mine[at]! < theirs[at]!
}

/** For migrations: from here on only this version and later ones run. It is never lowered. */
export const requireVersion = Effect.fnUntraced(function* (version: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ oldest_program: string }>`select oldest_program from svc_schema`
  if (row !== undefined && !isOlder(row.oldest_program, version)) return
  yield* sql`insert into svc_schema (oldest_program) values (${version})
    on conflict (id) do update set oldest_program = excluded.oldest_program`
})

/** Refuses to go on where this program is older than the store allows. */
export const refuseOlderVersion = Effect.fnUntraced(function* (sql: Sql, program: string = apiVersion) {
  const [there] = yield* sql<{ found: boolean }>`select to_regclass('svc_schema') is not null as found`
  if (there?.found !== true) return
  const [row] = yield* sql<{ oldest_program: string }>`select oldest_program from svc_schema`
  if (row === undefined || !isOlder(program, row.oldest_program)) return
  return yield* new StoreUnfit({
    message: `The database was migrated for version ${row.oldest_program} and later, and this is ${program}: run ${row.oldest_program} or a later one, or restore a backup of this version.`,
  })
})

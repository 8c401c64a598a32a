/** One PostgreSQL for all tests, without fsync, and a migrated database that each test file's own is copied from. */
import * as path from "node:path"
import * as Database from "@svc/cluster/store/Database"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { migrate } from "@svc/cluster/store/Migrations"
import { Effect, Exit, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { installed } from "../connectors/network/Installation.ts"

export interface TestServer {
  readonly path?: string
  readonly host?: string
  readonly port?: number
  readonly username: string
  readonly password: string
}

declare module "vitest" {
  interface ProvidedContext {
    server: TestServer
  }
}

export const templateDatabase = "template_svc"

const prepare = Effect.gen(function* () {
  const { connection } = yield* EmbeddedPostgres.open({
    directory: path.join(import.meta.dirname, "..", "..", "node_modules", ".cache", "test-postgres"),
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "400" },
  })
  yield* Effect.gen(function* () {
    const sql = yield* Database.Unhurried
    // Databases of runs that were cut short.
    const left = yield* sql<{
      datname: string
    }>`select datname from pg_database where datname like 'test\\_%' or datname = ${templateDatabase}`
    yield* Effect.forEach(left, ({ datname }) => sql.unsafe(`drop database "${datname}" with (force)`), {
      discard: true,
    })
    yield* sql.unsafe(`create database ${templateDatabase}`)
  }).pipe(Effect.provide(Database.layer(connection)))
  yield* migrate.pipe(Effect.provide(Database.layer({ ...connection, database: templateDatabase })))
  return connection
})

export default async function setup(project: TestProject) {
  // A run of all tests comes to these packages last; the first time they take minutes, most of it waiting.
  if (process.argv.slice(2).every((word) => word === "run" || word.startsWith("-"))) void installed()
  const scope = Scope.makeUnsafe()
  const connection = await Effect.runPromise(Scope.provide(prepare, scope))
  project.provide("server", { ...connection, password: Redacted.value(connection.password) })
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}

/**
 * A PostgreSQL for each test worker, without fsync, and in it a migrated database that each test file's own is copied from.
 * Not one for all: what lists leave out depends on every transaction of a server, in whichever database.
 */
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
    servers: ReadonlyArray<TestServer>
  }
}

export const templateDatabase = "template_svc"

const cache = path.join(import.meta.dirname, "..", "..", "node_modules", ".cache")

const prepare = Effect.fnUntraced(function* (worker: number) {
  const { connection } = yield* EmbeddedPostgres.open({
    directory: path.join(cache, `test-postgres-${worker}`),
    settings: {
      fsync: "off",
      synchronous_commit: "off",
      full_page_writes: "off",
      max_connections: "400",
      // A copy of the template is 800 files: by the kernel, it takes a sixth of what reading and writing them does.
      ...(process.platform === "linux" ? { file_copy_method: "clone" } : {}),
    },
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
  return { ...connection, password: Redacted.value(connection.password) }
})

export default async function setup(project: TestProject) {
  // A run of all tests comes to these packages late (`Order`); the first time they take minutes, most of it waiting.
  if (process.argv.slice(2).every((word) => word === "run" || word.startsWith("-"))) void installed()
  const scope = Scope.makeUnsafe()
  const workers = Array.from({ length: project.config.maxWorkers }, (_, n) => n + 1)
  const prepared = Effect.forEach(workers, prepare, { concurrency: "unbounded" })
  project.provide("servers", await Effect.runPromise(Scope.provide(prepared, scope)))
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}

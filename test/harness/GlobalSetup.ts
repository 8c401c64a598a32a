/**
 * Starts a PostgreSQL without fsync for each test worker, with a migrated database as the template of each test file.
 * The workers do not share a server, because lists depend on every open transaction of a server.
 */
import { rmSync } from "node:fs"
import * as path from "node:path"
import * as Database from "@svc/cluster/store/Database"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { installed } from "../connectors/network/Installation.ts"
import * as TestServers from "./TestServers.ts"

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

const settings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "400",
  max_wal_size: "256MB",
  min_wal_size: "32MB",
  // The kernel clones files if the file system supports it, which takes a sixth of the time of copying them.
  ...(process.platform === "linux" ? { file_copy_method: "clone" } : {}),
}

const serve = Effect.fnUntraced(function* (prepared: string, directory: string) {
  TestServers.copy(prepared, directory)
  const { connection } = yield* EmbeddedPostgres.open({ directory, settings })
  yield* Effect.gen(function* () {
    const sql = yield* Database.Unhurried
    yield* sql.unsafe(`create database ${templateDatabase} template postgres strategy file_copy`)
  }).pipe(Effect.provide(Layer.fresh(Database.layer({ ...connection, database: "template1" }))))
  return { ...connection, password: Redacted.value(connection.password) }
})

export default async function setup(project: TestProject) {
  // A full run needs these packages late (`Order`). Their first installation takes minutes, mostly of waiting.
  const isQuick = process.env["SVC_TESTS"] === "quick"
  if (!isQuick && process.argv.slice(2).every((word) => word === "run" || word.startsWith("-"))) void installed()
  const home = TestServers.folder()
  const workers = Array.from({ length: project.config.maxWorkers }, (_, n) => path.join(home, `${n + 1}`))
  const scope = Scope.makeUnsafe()
  const end = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    try {
      for (const directory of workers) TestServers.refuseDeadlocks(directory)
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  }
  try {
    const prepared = path.join(home, "prepared")
    await Effect.runPromise(TestServers.prepare(prepared))
    // Set for the workers, which start later.
    process.env[TestServers.preparedName] = prepared
    const temporary = TestServers.temporary(home)
    if (temporary !== undefined) process.env["TMPDIR"] = temporary
    const servers = Effect.forEach(workers, (directory) => serve(prepared, directory), { concurrency: "unbounded" })
    project.provide("servers", await Effect.runPromise(Scope.provide(servers, scope)))
  } catch (error) {
    await end()
    throw error
  }
  return end
}

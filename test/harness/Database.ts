/** A private database, copied from the migrated template and dropped after the test. */
import { randomBytes } from "node:crypto"
import * as Stores from "@svc/cluster/store/Database"
import { Clock, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { inject } from "vitest"
import { templateDatabase } from "./GlobalSetup.ts"

export interface TestDatabase {
  readonly settings: Stores.ConnectionSettings
  readonly drop: () => Promise<void>
}

const administer = (statement: string) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const sql = yield* Stores.Unhurried
        yield* sql.unsafe(statement)
      }).pipe(Effect.provide(Layer.fresh(Stores.layer({ ...connection(), database: "postgres" })))),
    ),
  )

/** The administrator's connection to this worker's PostgreSQL. */
export const connection = () => {
  const server = inject("servers")[Number(process.env["VITEST_POOL_ID"]) - 1]!
  return { ...server, password: Redacted.make(server.password) }
}

export const makeDatabase = async (): Promise<TestDatabase> => {
  const database = `test_${randomBytes(6).toString("hex")}`
  await administer(`create database ${database} template ${templateDatabase} strategy file_copy`)
  return {
    settings: { ...connection(), database },
    drop: () => administer(`drop database ${database} with (force)`),
  }
}

export const closeScope = (scope: Scope.Closeable) => Effect.runPromise(Scope.close(scope, Exit.void))

/** Connections use the machine's clock, so that a month of test time does not trigger a month of health checks. */
const machineClock = Layer.succeed(Clock.Clock, Clock.Clock.defaultValue())

/** Database clients of a private database, for the lifetime of a test layer. */
export const databaseLayer = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(Effect.promise(makeDatabase), ({ drop }) => Effect.promise(drop)),
    ({ settings }) => Layer.fresh(Stores.layer(settings)),
  ),
).pipe(Layer.provide(machineClock), Layer.orDie)

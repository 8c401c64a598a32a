/** Queries the database of a deployment directly, without the service. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import type { Deployment } from "../harness/Deployment.ts"

export const settingsOf = (deployment: Deployment): Stores.ConnectionSettings => {
  const home = path.join(deployment.directory, "pg18")
  const lines = readFileSync(path.join(home, "data", "postmaster.pid"), "utf8").split("\n")
  return {
    path: `${lines[4]}/.s.PGSQL.${lines[3]}`,
    username: "svc",
    password: Redacted.make(readFileSync(path.join(home, "password"), "utf8")),
    database: "postgres",
  }
}

export const inStore = <A extends object = object>(
  deployment: Deployment,
  statement: string,
): Promise<ReadonlyArray<A>> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(Effect.service(Stores.Unhurried), (sql) => sql.unsafe<A>(statement)).pipe(
        Effect.provide(Layer.fresh(Stores.layer(settingsOf(deployment)))),
      ),
    ),
  )

/** Runs `during` while a transaction holds the locks of `statement`. */
export const whileLocked = (deployment: Deployment, statement: string, during: () => Promise<void>): Promise<void> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(Effect.service(Stores.Unhurried), (sql) =>
        sql.withTransaction(
          Effect.andThen(
            sql.unsafe(statement),
            Effect.promise(() => during()),
          ),
        ),
      ).pipe(Effect.provide(Layer.fresh(Stores.layer(settingsOf(deployment))))),
    ),
  )

/** Returns a query function over one persistent connection, so that frequent polling costs little. */
export const persistentQuery = async (deployment: Deployment) => {
  const scope = Scope.makeUnsafe()
  const context = await Effect.runPromise(
    Layer.buildWithScope(Layer.fresh(Stores.layer(settingsOf(deployment))), scope),
  )
  const run = Effect.runPromiseWith(context)
  const sql = await run(Effect.service(Stores.Unhurried))
  return {
    look: <A extends object>(statement: string): Promise<ReadonlyArray<A>> => run(sql.unsafe<A>(statement)),
    close: (): Promise<void> => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

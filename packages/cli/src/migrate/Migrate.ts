/** Implements `svc migrate`, over the database of the settings. */
import * as Database from "@svc/cluster/store/Database"
import { migrate, refuse, waiting } from "@svc/cluster/store/Migrations"
import { Effect } from "effect"
import { type Format, print } from "../client/Format.ts"
import { load } from "../serve/Settings.ts"
import * as Store from "../serve/Store.ts"

const migrations = (number: number) => `${number} migration${number === 1 ? "" : "s"}`

/** Runs an effect in the database of the settings. The embedded database is started for it if it does not run. */
const inStore = <A, E>(effect: Effect.Effect<A, E, Database.Unhurried>) =>
  Effect.gen(function* () {
    const { connection } = yield* Store.open(yield* load)
    return yield* Effect.provide(effect, Database.layer(connection))
  }).pipe(Effect.scoped)

/** Applies pending migrations, under the lock that excludes other processes. */
export const run = (format: Format) =>
  inStore(
    Effect.gen(function* () {
      yield* refuse
      const names = (yield* migrate).map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`)
      yield* print(
        format,
        { applied: names },
        names.length === 0
          ? ["The database is up to date."]
          : [`${migrations(names.length)} run:`, ...names.map((name) => `  ${name}`)],
      )
    }),
  )

/** Lists pending migrations without applying them. */
export const look = (format: Format) =>
  inStore(
    Effect.gen(function* () {
      yield* refuse
      const { names, unknown } = yield* waiting
      if (names.length > 0) yield* Effect.sync(() => void (process.exitCode = 1))
      yield* print(format, { pending: names, unknown }, [
        ...(unknown.length > 0 ? [`The database has migrations of a later version (${unknown.join(", ")}).`] : []),
        ...(names.length === 0
          ? ["The database is up to date."]
          : [`${migrations(names.length)} pending:`, ...names.map((name) => `  ${name}`)]),
      ])
    }),
  )

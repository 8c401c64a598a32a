/** Implements `svc migrate`, over the database of the settings. */
import * as Database from "@svc/cluster/store/Database"
import { migrate, refuse, waiting } from "@svc/cluster/store/Migrations"
import { Effect } from "effect"
import { load } from "../serve/Settings.ts"
import * as Store from "../serve/Store.ts"

const say = (lines: ReadonlyArray<string>) => Effect.sync(() => process.stdout.write(`${lines.join("\n")}\n`))
const migrations = (number: number) => `${number} migration${number === 1 ? "" : "s"}`

/** Runs an effect in the database of the settings. The embedded database is started for it if it does not run. */
const inStore = <A, E>(effect: Effect.Effect<A, E, Database.Unhurried>) =>
  Effect.gen(function* () {
    const { connection } = yield* Store.open(yield* load)
    return yield* Effect.provide(effect, Database.layer(connection))
  }).pipe(Effect.scoped)

/** Applies pending migrations, under the lock that excludes other processes. */
export const run = inStore(
  Effect.gen(function* () {
    yield* refuse
    const done = yield* migrate
    yield* say(
      done.length === 0
        ? ["The database is up to date."]
        : [`${migrations(done.length)} run:`, ...done.map(([id, name]) => `  ${String(id).padStart(4, "0")}_${name}`)],
    )
  }),
)

/** Lists pending migrations without applying them. */
export const look = inStore(
  Effect.gen(function* () {
    yield* refuse
    const { names, unknown } = yield* waiting
    if (unknown.length > 0) yield* say([`The database has migrations of a later version (${unknown.join(", ")}).`])
    if (names.length === 0) return yield* say(["The database is up to date."])
    yield* say([`${migrations(names.length)} pending:`, ...names.map((name) => `  ${name}`)])
    yield* Effect.sync(() => void (process.exitCode = 1))
  }),
)

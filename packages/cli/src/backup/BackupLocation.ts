/** Locates what a backup needs: the embedded database, its master keys and the backup files. */
import * as fs from "node:fs"
import * as path from "node:path"
import { PgClient } from "@effect/sql-pg"
import { BackupFailed } from "@svc/cluster/backup/Manifest"
import { type MasterKeys, parseMasterKeys } from "@svc/cluster/sealing/Sealing"
import * as Database from "@svc/cluster/store/Database"
import type * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Effect, Layer, Option, Redacted } from "effect"
import type { Settings } from "../serve/Settings.ts"

/** Fails for a database of the operator, which has better backup tools. */
export const refuseForeign = ({ databaseUrl }: Settings) =>
  Option.isSome(databaseUrl)
    ? Effect.fail(
        new BackupFailed({
          message:
            "This command is for the embedded database, but DATABASE_URL is set: use pg_dump -Fc and pg_restore of its version, pgBackRest, or your provider's backups.",
        }),
      )
    : Effect.void

/** Opens the database clients: one without time limits for the rows, and the ones that migrations use. */
export const clients = (connection: EmbeddedPostgres.Connection) =>
  Layer.mergeAll(
    Layer.fresh(PgClient.layer({ ...connection, applicationName: "svc:backup", maxConnections: 1 })),
    Database.layer(connection),
  )

const keyFile = ({ dataDirectory }: Settings) => path.join(dataDirectory, "master.key")

/** Returns the master keys of the settings or the data directory. */
export const masterKeys = Effect.fnUntraced(function* (settings: Settings) {
  const file = keyFile(settings)
  const text = Option.match(settings.masterKey, {
    onSome: Redacted.value,
    onNone: () => (fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : undefined),
  })
  const name = Option.isSome(settings.masterKey) ? "SVC_MASTER_KEY" : file
  if (text === undefined) return { name, keys: [] as MasterKeys }
  const keys = yield* Effect.mapError(
    parseMasterKeys(text),
    ({ message }) => new BackupFailed({ message: `${name} is not a valid master key. ${message}` }),
  )
  return { name, keys }
})

const pattern = /^svc-\d{8}T\d{6}Z\.tar\.zst$/

/** Lists the backups in a folder, newest first. */
export const backupsIn = (folder: string): ReadonlyArray<string> =>
  fs
    .readdirSync(folder)
    .filter((name) => pattern.test(name))
    .toSorted()
    .toReversed()
    .map((name) => path.join(folder, name))

export const nameAt = (at: Date): string => `svc-${at.toISOString().replace(/[-:]|\.\d+/g, "")}.tar.zst`

/** Removes all but the newest backups and returns the removed files. At least one backup stays. */
export const prune = (folder: string, keep: number): ReadonlyArray<string> => {
  const old = backupsIn(folder).slice(Math.max(1, keep))
  for (const file of old) fs.rmSync(file)
  return old
}

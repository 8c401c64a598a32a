/**
 * `svc restore`: restores a backup into an empty data directory. The database is built in a temporary folder and moved
 * into place when complete, so that an interrupted restore leaves nothing that could be served.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as BackupLoader from "@svc/cluster/backup/BackupLoader"
import { BackupFailed, inspect, type Manifest } from "@svc/cluster/backup/Manifest"
import * as RestoreAdjustments from "@svc/cluster/backup/RestoreAdjustments"
import { type MasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Effect } from "effect"
import { forPeople, type Format, print } from "../client/Format.ts"
import { withProgress } from "../client/Progress.ts"
import { load, type Settings } from "../serve/Settings.ts"
import * as BackupLocation from "./BackupLocation.ts"

const quoted = (ids: ReadonlyArray<string>) => ids.map((id) => `"${id}"`).join(", ")

/** Fails before any change if the master keys cannot decrypt the backup. */
const tryKeys = Effect.fnUntraced(function* (manifest: Manifest, { name, keys }: { name: string; keys: MasterKeys }) {
  if (manifest.canary === null) return
  const wanted = manifest.master_keys
  if (keys.length === 0) {
    return yield* new BackupFailed({
      message: `This backup is sealed with master key ${quoted(wanted)}, and no key is set: set SVC_MASTER_KEY, or restore the file ${name}.`,
    })
  }
  const missing = wanted.filter((id) => !keys.some((key) => key.id === id))
  if (missing.length > 0) {
    return yield* new BackupFailed({
      message: `This backup is sealed with master key ${quoted(wanted)}, but ${name} has ${quoted(keys.map(({ id }) => id))}. Nothing was restored.`,
    })
  }
  const opened = Effect.flatMap(Sealing, ({ openCanary }) => openCanary(Buffer.from(manifest.canary!, "base64")))
  yield* opened.pipe(
    Effect.provide(Sealing.layer(keys)),
    Effect.mapError(
      () =>
        new BackupFailed({
          message: `${name} has a master key ${quoted(wanted)}, but not the one with which this backup is sealed. Nothing was restored.`,
        }),
    ),
  )
})

/** Loads the backup into a new database in a folder, then stops its server. */
const fill = (directory: string, file: string, manifest: Manifest, keepSessions: boolean) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { connection, home } = yield* EmbeddedPostgres.open({ directory })
      return yield* Effect.gen(function* () {
        yield* BackupLoader.load(home, file, manifest)
        return { home, arrived: yield* RestoreAdjustments.arrive(manifest, { keepSessions }) }
      }).pipe(Effect.provide(BackupLocation.clients(connection)))
    }),
  )

export const aside = ({ dataDirectory }: Settings) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        fs.mkdirSync(dataDirectory, { recursive: true })
        const folder = fs.mkdtempSync(path.join(dataDirectory, ".restoring-"))
        // The user of the database server needs to traverse the folder and owns the files in it.
        fs.chmodSync(folder, 0o755)
        const { uid, gid } = fs.statSync(dataDirectory)
        if (process.getuid?.() === 0) fs.chownSync(folder, uid, gid)
        // If that user cannot access the folder, the server runs elsewhere.
        return { folder, home: path.dirname(EmbeddedPostgres.homeOf(folder)) }
      },
      catch: (error) => new BackupFailed({ message: `${dataDirectory} is not writable: ${String(error)}` }),
    }),
    ({ folder, home }) =>
      Effect.sync(() => {
        for (const one of [folder, home]) fs.rmSync(one, { recursive: true, force: true })
      }),
  )

/** Moves the built database into place. A rejected start may have left an empty folder there. */
export const putInPlace = (made: string, home: string) =>
  Effect.try({
    try: () => {
      fs.mkdirSync(path.dirname(home), { recursive: true })
      fs.rmSync(home, { recursive: true, force: true })
      fs.renameSync(made, home)
    },
    catch: (error) => new BackupFailed({ message: `${home} cannot be created: ${String(error)}` }),
  })

const rowsOf = ({ tables }: Manifest) => tables.reduce((sum, { rows }) => sum + rows, 0)

/**
 * Returns the summary for the operator. Keys and Orgs that were deleted after the backup are unknown, so the operator
 * must look them up.
 */
const tidings = (manifest: Manifest, { held, sessions }: RestoreAdjustments.Arrived) => [
  `The service is restored to its state at ${manifest.taken_at}. Later changes are lost:`,
  "- mail programs download their folders again (UIDVALIDITY was raised);",
  `- pending deliveries are on hold, since they may have been sent (${held.map(({ what, count }) => `${what}: ${count}`).join(", ")});`,
  "  `svc restore --release` releases them;",
  sessions > 0 ? `- ${sessions} sessions were ended, so users must sign in again;` : "- sessions are unchanged;",
  "- keys that were revoked since then are valid again, and accounts that were deleted since then are back: the previous",
  "  service's log and its Events `api_key.revoked` list them. Revoke and delete them again.",
]

export interface RestoreOptions {
  readonly verify: boolean
  readonly keepSessions: boolean
}

export const run = Effect.fn("svc.restore")(function* (
  file: string,
  { verify, keepSessions }: RestoreOptions,
  format: Format = forPeople,
) {
  const settings = yield* load
  yield* BackupLocation.refuseForeign(settings)
  const home = EmbeddedPostgres.homeOf(settings.dataDirectory)
  if (!verify && EmbeddedPostgres.hasData(settings.dataDirectory)) {
    return yield* new BackupFailed({
      message: `${home} already contains a database, and a restore needs an empty data directory: move it away, or set SVC_DATA_DIR.`,
    })
  }
  const manifest = yield* inspect(file)
  yield* tryKeys(manifest, yield* BackupLocation.masterKeys(settings))
  const { folder } = yield* aside(settings)
  const { home: made, arrived } = yield* withProgress(
    verify ? "Verifying" : "Restoring",
    fill(folder, file, manifest, keepSessions),
  )
  const counts = { rows: rowsOf(manifest), tables: manifest.tables.length, taken_at: manifest.taken_at }
  if (verify) {
    return yield* print(format, { file, verified: true, ...counts }, [
      `${file} is complete, its key is available, and its ${rowsOf(manifest)} rows of ${manifest.tables.length} tables can be restored.`,
    ])
  }
  yield* putInPlace(made, home)
  yield* print(format, { file, verified: false, ...counts, home, ...arrived }, [
    `Restored ${rowsOf(manifest)} rows of ${manifest.tables.length} tables to ${home}.`,
    "",
    ...tidings(manifest, arrived),
  ])
}, Effect.scoped)

/** Releases what a restore put on hold; the service may be running. */
export const release = (format: Format = forPeople) =>
  Effect.gen(function* () {
    const settings = yield* load
    yield* BackupLocation.refuseForeign(settings)
    const { connection } = yield* EmbeddedPostgres.open({ directory: settings.dataDirectory })
    const released = yield* Effect.provide(RestoreAdjustments.release, BackupLocation.clients(connection))
    const lines = released.map(({ what, count }) => `${count} ${what} go out.`)
    yield* print(format, { released }, lines)
  }).pipe(Effect.scoped)

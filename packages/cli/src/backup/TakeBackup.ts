/** `svc backup`: writes the complete content of the embedded database to one file, whether the service runs or not. */
import { once } from "node:events"
import * as fs from "node:fs"
import * as path from "node:path"
import { BackupFailed, type Manifest } from "@svc/cluster/backup/Manifest"
import * as BackupWriter from "@svc/cluster/backup/BackupWriter"
import { Unhurried } from "@svc/cluster/store/Database"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Clock, Effect, Option } from "effect"
import { forPeople, type Format, isForMachines, print } from "../client/Format.ts"
import { withProgress } from "../client/Progress.ts"
import { load } from "../serve/Settings.ts"
import * as BackupLocation from "./BackupLocation.ts"

const failed = (what: string) => (error: unknown) =>
  new BackupFailed({ message: `${what}: ${error instanceof Error ? error.message : String(error)}` })

/** Writes a file atomically: to a temporary name, synced to disk, then renamed. */
export const whole = Effect.fnUntraced(function* <E, R>(
  file: string,
  write: (out: fs.WriteStream) => Effect.Effect<Manifest, E, R>,
) {
  const part = `${file}.part`
  const out = yield* Effect.tryPromise({
    try: async () => {
      const stream = fs.createWriteStream(part, { mode: 0o600, flush: true })
      await once(stream, "open")
      return stream
    },
    catch: failed(`${part} is not writable`),
  })
  return yield* write(out).pipe(
    Effect.tap(() =>
      Effect.try({
        try: () => {
          fs.renameSync(part, file)
          const folder = fs.openSync(path.dirname(file), "r")
          fs.fsyncSync(folder)
          fs.closeSync(folder)
        },
        catch: failed(`${file} is not writable`),
      }),
    ),
    Effect.onError(() => Effect.sync(() => fs.rmSync(part, { force: true }))),
  )
})

const rowsOf = ({ tables }: Manifest) => tables.reduce((sum, { rows }) => sum + rows, 0)

export const run = Effect.fn("svc.backup")(function* (
  target: string,
  keep: Option.Option<number>,
  format: Format = forPeople,
) {
  const settings = yield* load
  yield* BackupLocation.refuseForeign(settings)
  const at = new Date(yield* Clock.currentTimeMillis)
  const isFolder = target !== "-" && fs.statSync(target, { throwIfNoEntry: false })?.isDirectory() === true
  if (Option.isSome(keep) && !isFolder) {
    return yield* new BackupFailed({ message: "--keep requires a folder: svc backup --keep 7 /var/backups/svc" })
  }
  if (!fs.existsSync(settings.dataDirectory)) {
    return yield* new BackupFailed({
      message: `There is nothing to back up: ${settings.dataDirectory} does not exist.`,
    })
  }
  const file = isFolder ? path.join(target, BackupLocation.nameAt(at)) : target
  const { connection, home } = yield* EmbeddedPostgres.open({ directory: settings.dataDirectory })
  return yield* Effect.gen(function* () {
    const manifest =
      file === "-"
        ? yield* BackupWriter.take(home, process.stdout)
        : yield* withProgress(
            "Backing up",
            whole(file, (out) => BackupWriter.take(home, out)),
          )
    const bytes = file === "-" ? 0 : fs.statSync(file).size
    const sql = yield* Unhurried
    yield* sql`insert into backup (finished_at, bytes, rows) values (${new Date(yield* Clock.currentTimeMillis)}, ${bytes}, ${rowsOf(manifest)})`
    const removed = isFolder && Option.isSome(keep) ? BackupLocation.prune(target, keep.value) : []
    // Standard output receives the backup, or what machines read about it.
    if (file !== "-" && isForMachines(format)) {
      const tables = manifest.tables.length
      const body = { file, bytes, rows: rowsOf(manifest), tables, master_keys: manifest.master_keys, removed }
      return yield* print(format, body, [])
    }
    return yield* Effect.sync(() =>
      process.stderr.write(
        [
          `Backed up ${rowsOf(manifest)} rows of ${manifest.tables.length} tables${file === "-" ? "" : ` to ${file} (${(bytes / 1e6).toFixed(1)} MB)`}.`,
          ...(manifest.master_keys.length === 0
            ? []
            : [
                `It can only be restored with master key ${manifest.master_keys.map((id) => `"${id}"`).join(", ")}: store the key elsewhere.`,
              ]),
          ...removed.map((one) => `Removed ${one}.`),
          "",
        ].join("\n"),
      ),
    )
  }).pipe(Effect.provide(BackupLocation.clients(connection)))
}, Effect.scoped)

/** `svc backup`, `svc restore` and `svc upgrade-store`. Implementations are loaded on use. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { formatFlags } from "../client/Format.ts"
import { reportedError } from "../ReportedError.ts"

export const backup = Command.make(
  "backup",
  {
    target: Argument.String("target").pipe(
      Argument.withDescription("A file, a folder (the file is named by the time), or - for standard output"),
    ),
    keep: Flag.Int("keep").pipe(
      Flag.withDescription("Number of backups to keep in the folder; older ones are removed"),
      Flag.optional,
    ),
    ...formatFlags,
  },
  ({ target, keep, ...format }) =>
    reportedError(
      Effect.flatMap(
        Effect.promise(() => import("./TakeBackup.ts")),
        ({ run }) => run(target, keep, format),
      ),
    ),
).pipe(Command.withDescription("Back up the embedded database; the service may be running."))

export const restore = Command.make(
  "restore",
  {
    file: Argument.String("file").pipe(Argument.withDescription("The backup"), Argument.optional),
    verify: Flag.Boolean("verify").pipe(
      Flag.withDescription("Restore into a temporary database, verify it, and discard it"),
      Flag.withDefault(false),
    ),
    keepSessions: Flag.Boolean("keep-sessions").pipe(
      Flag.withDescription("Keep the sessions of the backup valid"),
      Flag.withDefault(false),
    ),
    release: Flag.Boolean("release").pipe(
      Flag.withDescription("Release the deliveries and mail that a restore put on hold"),
      Flag.withDefault(false),
    ),
    ...formatFlags,
  },
  ({ file, verify, keepSessions, release, ...format }) =>
    reportedError(
      Effect.gen(function* () {
        const Restore = yield* Effect.promise(() => import("./Restore.ts"))
        if (release) return yield* Restore.release(format)
        if (Option.isNone(file)) {
          const { BackupFailed } = yield* Effect.promise(() => import("@svc/cluster/backup/Manifest"))
          return yield* new BackupFailed({ message: "Name the backup: svc restore <file>, or svc restore --release." })
        }
        return yield* Restore.run(file.value, { verify, keepSessions }, format)
      }),
    ),
).pipe(Command.withDescription("Restore a backup into an empty data directory."))

export const upgradeStore = Command.make(
  "upgrade-store",
  {
    binaries: Flag.String("binaries").pipe(
      Flag.withDescription("Folder with bin and lib of the previous PostgreSQL, if its npm package is not installed"),
      Flag.optional,
    ),
    discard: Flag.Boolean("discard").pipe(
      Flag.withDescription("Remove the previous database after the upgrade"),
      Flag.withDefault(false),
    ),
    ...formatFlags,
  },
  ({ binaries, discard, ...format }) =>
    reportedError(
      Effect.flatMap(
        Effect.promise(() => import("./UpgradeStore.ts")),
        (UpgradeStore) => (discard ? UpgradeStore.discard(format) : UpgradeStore.run(binaries, format)),
      ),
    ),
).pipe(Command.withDescription("Upgrade the embedded database to this program's version of PostgreSQL."))

/** `svc backup`, `svc restore` and `svc upgrade-store`. What they do is loaded when it is wanted. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { reportedError } from "../ReportedError.ts"

export const backup = Command.make(
  "backup",
  {
    target: Argument.String("target").pipe(
      Argument.withDescription("A file, a folder that gets a file named by the time, or - for standard output"),
    ),
    keep: Flag.Int("keep").pipe(
      Flag.withDescription("Backups that stay in the folder; older ones are removed"),
      Flag.optional,
    ),
  },
  ({ target, keep }) =>
    reportedError(
      Effect.flatMap(
        Effect.promise(() => import("./TakeBackup.ts")),
        ({ run }) => run(target, keep),
      ),
    ),
).pipe(Command.withDescription("Back up the embedded database, while the service runs or not."))

export const restore = Command.make(
  "restore",
  {
    file: Argument.String("file").pipe(Argument.withDescription("The backup"), Argument.optional),
    verify: Flag.Boolean("verify").pipe(
      Flag.withDescription("Restore aside, compare, and throw it away"),
      Flag.withDefault(false),
    ),
    keepSessions: Flag.Boolean("keep-sessions").pipe(
      Flag.withDescription("Leave people signed in as they were then"),
      Flag.withDefault(false),
    ),
    release: Flag.Boolean("release").pipe(
      Flag.withDescription("Let go the deliveries and the mail that a restore held"),
      Flag.withDefault(false),
    ),
  },
  ({ file, verify, keepSessions, release }) =>
    reportedError(
      Effect.gen(function* () {
        const Restore = yield* Effect.promise(() => import("./Restore.ts"))
        if (release) return yield* Restore.release
        if (Option.isNone(file)) {
          const { BackupFailed } = yield* Effect.promise(() => import("@svc/cluster/backup/Manifest"))
          return yield* new BackupFailed({ message: "Which backup? svc restore <file>, or svc restore --release." })
        }
        return yield* Restore.run(file.value, { verify, keepSessions })
      }),
    ),
).pipe(Command.withDescription("Restore a backup into an empty data directory."))

export const upgradeStore = Command.make(
  "upgrade-store",
  {
    binaries: Flag.String("binaries").pipe(
      Flag.withDescription("The folder of the former PostgreSQL's bin and lib, where its npm package is not installed"),
      Flag.optional,
    ),
    discard: Flag.Boolean("discard").pipe(
      Flag.withDescription("Remove the former database, once the new one is in place"),
      Flag.withDefault(false),
    ),
  },
  ({ binaries, discard }) =>
    reportedError(
      Effect.flatMap(
        Effect.promise(() => import("./UpgradeStore.ts")),
        (UpgradeStore) => (discard ? UpgradeStore.discard : UpgradeStore.run(binaries)),
      ),
    ),
).pipe(Command.withDescription("Bring the embedded database of a former version of PostgreSQL to this one's."))

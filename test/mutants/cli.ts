/** Planted bugs in `packages/cli`. */
import type { Mutants } from "./Mutant.ts"

export const cli: Mutants = {
  "backup-readable-by-all": {
    file: "cli/src/backup/Take.ts",
    from: "fs.createWriteStream(part, { mode: 0o600, flush: true })",
    to: "fs.createWriteStream(part, { flush: true })",
    bug: "a backup file can be read by every user of the machine",
    tests: ["operations/backup", "operations/restore", "operations/upgrade-store"],
  },
  "secret-in-log-error": {
    file: "cli/src/Logging.ts",
    from: "...(cause === undefined ? {} : { error: Redaction.ofText(cause) }),",
    to: "...(cause === undefined ? {} : { error: cause }),",
    bug: "secrets in the text of an error are not struck out of the log",
    tests: ["cli/logging", "operations/process", "operations/tracing", "cli/output", "cli/secrets"],
  },
  "ready-while-leaving": {
    file: "cli/src/serve/ops/Readiness.ts",
    from: '          readiness.leaves()\n          yield* Effect.logInfo("leaving")\n          yield* Effect.sleep(delay)\n',
    to: '          yield* Effect.logInfo("leaving")\n          yield* Effect.sleep(delay)\n          readiness.leaves()\n',
    bug: "readiness says ready during the whole shutdown delay (told after it, not before)",
    tests: ["operations/process", "scripts/stopping", "http/leaving", "operations/metrics", "cluster/roles"],
  },
  "migrate-check-ends-well": {
    file: "cli/src/migrate/Migrate.ts",
    from: "    yield* Effect.sync(() => void (process.exitCode = 1))\n",
    to: "",
    bug: "a deployment script does not notice that migrations are pending",
    tests: ["cli/operating"],
  },
  "doctor-fails-for-warnings": {
    file: "cli/src/doctor/Command.ts",
    from: 'if (all.some(({ status }) => status === "fail")) process.exitCode = 1',
    to: 'if (all.some(({ status }) => status !== "ok")) process.exitCode = 1',
    bug: "the doctor ends with 1 for a mere warning",
    tests: ["cli/operating"],
  },
  "master-key-readable-by-all": {
    file: "cli/src/serve/MasterKey.ts",
    from: ', { mode: 0o600, flag: "wx" }',
    to: ', { flag: "wx" }',
    bug: "the master key can be read by every user of the machine",
    tests: ["cli/operating"],
  },
  "prune-keeps-one-less": {
    file: "cli/src/backup/Place.ts",
    from: "backupsIn(folder).slice(keep)",
    to: "backupsIn(folder).slice(keep - 1)",
    bug: "one backup less stays than was asked for",
    tests: ["cli/operating"],
  },
  "prune-removes-the-youngest": {
    file: "cli/src/backup/Place.ts",
    from: "    .toSorted()\n    .toReversed()\n",
    to: "    .toSorted()\n",
    bug: "the youngest backups are removed and the oldest stay",
    tests: ["cli/operating"],
  },
  "second-signal-ends-well": {
    file: "cli/src/tunnel/Command.ts",
    from: "process.exit(130)",
    to: "process.exit(0)",
    bug: "a tunnel that is cut off by a second Ctrl+C looks like one that ended well",
    tests: ["tunnel/command"],
  },
  "listener-at-the-last-tunnel-port": {
    file: "cli/src/doctor/Listeners.ts",
    from: "port <= last",
    to: "port < last",
    bug: "the doctor misses a listener at the last port of the tunnels",
    tests: ["operations/doctor"],
  },
  "master-key-file-readable-by-all": {
    file: "cli/src/doctor/Configuration.ts",
    from: "grants(file, 0o007)",
    to: "grants(file, 0o004 & 0o040)",
    bug: "the doctor misses a master key file that everybody can read",
    tests: ["operations/doctor"],
  },
}

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
}

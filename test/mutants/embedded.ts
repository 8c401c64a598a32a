/** Planted bugs in the start of the embedded database after a kill. */
import type { Mutants } from "./Mutant.ts"

export const embedded: Mutants = {
  "embedded-server-that-is-being-stopped": {
    file: "cluster/src/store/EmbeddedPostgres.ts",
    from: "Lease.isLeaving(home) ? undefined : true",
    to: "Lease.isLeaving(home) ? true : true",
    bug: "a start right after kill -9 uses the server that the killed process is still stopping",
    tests: ["store/embedded"],
  },
  "embedded-remains-are-final": {
    file: "cluster/src/store/EmbeddedPostgres.ts",
    from: "if (!Server.metRemains(home, launch.log)) {",
    to: "if (Server.metRemains(home, launch.log) || true) {",
    bug: "a start fails while processes of a killed server hold its shared memory",
    tests: ["store/embedded"],
  },
  "embedded-orphans-stay": {
    file: "cluster/src/store/embedded/PidFile.ts",
    from: 'process.kill(Number(pid), "SIGQUIT")',
    to: "process.kill(Number(pid), 0)",
    bug: "a start waits for a statement of a killed server until that statement ends by itself",
    tests: ["store/embedded"],
  },
  "embedded-empty-lock-file": {
    file: "cluster/src/store/embedded/PidFile.ts",
    from: "return stat?.size === 0 && Date.now() - stat.mtimeMs > 1000",
    to: "return stat?.size === 0 && Date.now() - stat.mtimeMs > 1e12",
    bug: "a server that was killed while it created its lock file can never be started again",
    tests: ["store/embedded"],
  },
  "embedded-copy-replaced": {
    file: "cluster/src/store/embedded/Binaries.ts",
    from: "if (!renamed(aside, copy) && !isUsable()) {",
    to: "if (!renamed(aside, copy)) {",
    bug: "a process that starts removes the binaries that another process runs",
    tests: ["store/installation"],
  },
  "spool-folder-remains": {
    file: "cluster/src/backup/Spool.ts",
    from: "fs.rmSync(path.dirname(file), {",
    to: "fs.rmSync(file, {",
    bug: "Every backup leaves a folder in the home of the database",
    tests: ["operations/spool"],
  },
  "spool-waits-for-a-failed-copy": {
    file: "cluster/src/backup/Spool.ts",
    from: "      if (!isOpen) {",
    to: "      if (false) {",
    bug: "A backup whose copy fails at once waits without end",
    tests: ["operations/spool"],
  },
}

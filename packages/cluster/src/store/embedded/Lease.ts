/**
 * The leases of the processes that use the server. A lease is a pipe to a small shell, which sees the pipe close however its
 * process ends, `kill -9` included. The shell of the last process stops the server, if the pid is still the server's. From its
 * decision until the server has stopped, the shell is listed in `leaving`, so that a process that starts in that time does not
 * use a server that is about to stop.
 */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"

const script = `trap '' INT TERM HUP
: > "$1/leases/$$"; echo held; cat > /dev/null
: > "$1/leaving/$$"; trap 'rm -f "$1/leaving/$$"' EXIT; rm -f "$1/leases/$$"
for lease in "$1"/leases/*; do [ -e "$lease" ] || continue; kill -0 "\${lease##*/}" 2>/dev/null && exit 0; rm -f "$lease"; done
{ read -r pid < "$1/data/postmaster.pid"; } 2>/dev/null || exit 0
if [ -r "/proc/$pid/comm" ]; then read -r name < "/proc/$pid/comm"; else name=$(ps -o comm= -p "$pid"); fi
case $name in *postgres*) kill -INT "$pid";; *) exit 0;; esac
left=600; while [ $((left -= 1)) -gt 0 ]; do
  { read -r now < "$1/data/postmaster.pid"; } 2>/dev/null && [ "$now" = "$pid" ] && kill -0 "$pid" 2>/dev/null || exit 0
  sleep 0.1 2>/dev/null || sleep 1
done`

export interface Lease {
  /** Resolves once the lease is released and, if nobody else holds one, the server has stopped. */
  readonly release: (signal: AbortSignal) => Promise<void>
}

const quiet = (stream: unknown) => {
  // The lease alone must not keep the process alive.
  if (typeof stream === "object" && stream !== null && "unref" in stream && typeof stream.unref === "function")
    stream.unref()
}

export const take = (home: string): Promise<Lease> =>
  new Promise((resolve, reject) => {
    const guard: ChildProcess = spawn("/bin/sh", ["-c", script, "pg-lease", home], {
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
      cwd: "/",
    })
    guard.once("error", reject)
    guard.once("exit", () => reject(new Error("the lease's shell ended")))
    guard.stdout!.once("data", () => {
      guard.unref()
      quiet(guard.stdin)
      quiet(guard.stdout)
      resolve({
        release: (signal) =>
          new Promise((released) => {
            guard.ref()
            signal.addEventListener("abort", () => guard.unref())
            guard.once("exit", () => released())
            guard.stdin!.end()
          }),
      })
    })
  })

/**
 * Returns whether the shell of a former process may still stop the server. If the caller already holds a lease, nobody
 * stops the server once this is false.
 */
export const isLeaving = (home: string): boolean =>
  fs.readdirSync(path.join(home, "leaving")).some((pid) => isShell(pid))

/** Returns whether the process runs and is the shell of a lease; its number may belong to another program by now. */
const isShell = (pid: string): boolean => {
  try {
    if (process.platform !== "linux") return process.kill(Number(pid), 0)
    return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("\0pg-lease\0")
  } catch {
    return false
  }
}

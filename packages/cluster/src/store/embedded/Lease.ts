/**
 * Who uses the server. Each process holds a lease: a pipe to a tiny shell of its own, which sees the pipe close however
 * the process ends, `kill -9` included. The shell of the last one out stops the server, if the pid is still its.
 */
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"

const script = `trap '' INT TERM HUP
: > "$1/leases/$$"; echo held; cat > /dev/null; rm -f "$1/leases/$$"
for lease in "$1"/leases/*; do [ -e "$lease" ] || continue; kill -0 "\${lease##*/}" 2>/dev/null && exit 0; rm -f "$lease"; done
read -r pid < "$1/data/postmaster.pid" 2>/dev/null || exit 0
if [ -r "/proc/$pid/comm" ]; then read -r name < "/proc/$pid/comm"; else name=$(ps -o comm= -p "$pid"); fi
case $name in *postgres*) kill -INT "$pid";; esac`

export interface Lease {
  /** Resolves once the lease is released; the server is then being stopped if nobody else holds one. */
  readonly release: () => Promise<void>
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
        release: () =>
          new Promise((released) => {
            guard.ref()
            guard.once("exit", () => released())
            guard.stdin!.end()
          }),
      })
    })
  })

/** Whether anybody holds a lease. */
export const anyHeld = (home: string): boolean => fs.readdirSync(path.join(home, "leases")).length > 0

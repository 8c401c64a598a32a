/** Which pid files name a running server. */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { Writable } from "node:stream"
import { running } from "@svc/cluster/store/embedded/PidFile"
import { expect, it } from "vitest"
import { eventually } from "../harness/Eventually.ts"

/** Starts three programs that end after a line of input, and becomes a process that does not wait for them. */
const parentProcess = `
  ./postgres <&3 & echo $!
  ./other <&3 & echo $!
  ./postgres <&0 & echo $!
  exec sleep 60`

it.runIf(process.platform === "linux")(
  "a server runs if the pid is that of a PostgreSQL that has not ended",
  async () => {
    const data = mkdtempSync(path.join(os.tmpdir(), "svc-pid-"))
    for (const name of ["postgres", "other"])
      writeFileSync(path.join(data, name), "#!/bin/sh\nread line\n", { mode: 0o755 })
    const parent = spawn("sh", ["-c", parentProcess], { cwd: data, stdio: ["pipe", "pipe", "inherit", "pipe"] })
    try {
      let output = ""
      parent.stdout!.on("data", (chunk: Buffer) => (output += chunk.toString()))
      const [server, other, zombie] = await eventually(
        async () => output.split("\n").map(Number),
        ({ length }) => length === 4,
      )
      const fieldOf = (pid: number, n: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[n]!
      await eventually(
        async () => [server!, other!, zombie!, parent.pid!].map((pid) => fieldOf(pid, 1)),
        (names) =>
          names[0] === "(postgres)" && names[1] === "(other)" && names[2] === "(postgres)" && names[3] !== "(sh)",
      )
      parent.stdin!.write("\n")
      await eventually(
        async () => fieldOf(zombie!, 2),
        (state) => state === "Z",
      )
      const runs = (pid: number) => {
        writeFileSync(path.join(data, "postmaster.pid"), `${pid}\n${data}\n1\n5433\n/run\nlocalhost\n1\nready   \n`)
        return running(data)
      }
      expect(runs(server!)).toEqual({ pid: server, port: 5433, socket: "/run/.s.PGSQL.5433", ready: true })
      expect([runs(other!), runs(zombie!)]).toEqual([undefined, undefined])
    } finally {
      ;(parent.stdio[3] as Writable).destroy()
      parent.kill("SIGKILL")
      rmSync(data, { recursive: true })
    }
  },
)

/** A first start of the embedded database that was interrupted, and the start after it. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout } from "node:timers/promises"
import { isLeaving } from "@svc/cluster/store/embedded/Lease"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { eventually } from "../harness/Eventually.ts"

/** Holds the start lock like a process that is starting the server. */
const starter = `
  const { DatabaseSync } = require("node:sqlite")
  new DatabaseSync(process.argv[1]).exec("BEGIN EXCLUSIVE")
  console.log("held")
  setInterval(() => {}, 1000)`

it.skipIf(process.platform !== "linux")(
  "removes the incomplete database of a killed first start and starts over, without a stale lock",
  async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "svc-first-"))
    chmodSync(directory, 0o755)
    const home = path.join(directory, "pg18")
    const half = path.join(home, "init-1")
    mkdirSync(half, { recursive: true })
    writeFileSync(path.join(half, "PG_VERSION"), "18")
    const holder = spawn(process.execPath, ["-e", starter, path.join(home, "start.lock")], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    try {
      await new Promise((resolve) => holder.stdout.once("data", resolve))
      const start = Effect.runPromise(
        Effect.scoped(Effect.map(EmbeddedPostgres.open({ directory }), () => readdirSync(home))),
      )
      // The process writes its lease before it waits for the lock.
      const leases = path.join(home, "leases")
      while (!existsSync(leases) || readdirSync(leases).length === 0) await setTimeout(5)
      for (let n = 0; n < 20; n++) {
        expect(existsSync(path.join(home, "password"))).toBe(false)
        await setTimeout(5)
      }
      holder.kill("SIGKILL")
      const there = await start
      expect(there).toContain("data")
      expect(there.filter((name) => name.startsWith("init-"))).toEqual([])
    } finally {
      holder.kill("SIGKILL")
      rmSync(directory, { recursive: true, force: true })
    }
  },
)

it.skipIf(process.platform !== "linux")(
  "a start waits only for shells that run, not for marks of killed ones",
  async () => {
    const home = mkdtempSync(path.join(os.tmpdir(), "svc-lease-"))
    mkdirSync(path.join(home, "leaving"))
    const mark = (pid: number) => path.join(home, "leaving", String(pid))
    expect(isLeaving(home)).toBe(false)
    // The first number belongs to no process, the second one to another program.
    for (const pid of [4_999_999, process.pid]) writeFileSync(mark(pid), "")
    expect(isLeaving(home)).toBe(false)
    const shell = spawn("/bin/sh", ["-c", "read end", "pg-lease", home], { stdio: ["pipe", "ignore", "ignore"] })
    writeFileSync(mark(shell.pid!), "")
    await eventually(async () => isLeaving(home), Boolean)
    const ended = once(shell, "exit")
    shell.stdin.end()
    await ended
    expect(isLeaving(home)).toBe(false)
    rmSync(home, { recursive: true })
  },
)

/** The embedded database shared by processes of one machine, with real processes and real kills. */
import { type ChildProcess, spawn } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { bundle } from "../../scripts/Bundling.ts"
import { eventually } from "../harness/Service.ts"
import { copy, preparedName } from "../harness/TestServers.ts"

// The test starts 20 of these processes. From a bundle, each takes a quarter of the time.
const cache = path.join(import.meta.dirname, "..", "..", "node_modules", ".cache")
let fixtures: string
beforeAll(async () => {
  mkdirSync(cache, { recursive: true })
  fixtures = mkdtempSync(path.join(cache, "holder-"))
  await bundle({ entries: { holder: path.join(import.meta.dirname, "fixtures", "holder.ts") }, folder: fixtures })
})
afterAll(() => rmSync(fixtures, { recursive: true, force: true }))

let directories: Array<string> = []
let children: Array<ChildProcess> = []

/** Returns an empty folder for a database. */
const emptyDirectory = () => {
  const made = mkdtempSync(path.join(os.tmpdir(), "svc-store-"))
  chmodSync(made, 0o755)
  directories.push(made)
  return made
}

/** Returns a folder with a database that no server uses, since most tests are not about its creation. */
const directory = () => {
  const made = emptyDirectory()
  copy(process.env[preparedName]!, made)
  return made
}

/** Starts a process that has loaded its modules and waits for `open` before it opens the database. */
const loaded = async (where: string) => {
  const child = spawn(process.execPath, [path.join(fixtures, "holder.mjs"), where], {
    stdio: ["pipe", "pipe", "inherit"],
  })
  children.push(child)
  let output = ""
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
  const line = async (n: number) =>
    (
      await eventually(
        async () => output.split("\n"),
        (lines) => lines.length > n + 1,
        20,
      )
    )[n]!
  let printed = 0
  const query = async (statement: string) => {
    child.stdin.write(`${statement}\n`)
    return line(++printed)
  }
  await line(0)
  return {
    child,
    open: () => query("open"),
    query,
    leave: async () => {
      child.stdin.end()
      await ended(child)
    },
    kill: () => child.kill("SIGKILL"),
  }
}

const ended = (child: ChildProcess) =>
  eventually(
    async () => child.exitCode ?? child.signalCode,
    (code) => code !== null,
  )

/** Starts a process that keeps the database open and runs statements. */
const holder = async (where: string) => {
  const made = await loaded(where)
  expect(await made.open()).toBe("ready")
  return made
}

const pidFile = (where: string) => path.join(where, "pg18", "data", "postmaster.pid")
const serverOf = (where: string) => Number(readFileSync(pidFile(where), "utf8").split("\n")[0])
const runs = (pid: number) => existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
const checkpointerOf = (server: number) =>
  Number(
    readFileSync(`/proc/${server}/task/${server}/children`, "utf8")
      .trim()
      .split(" ")
      .find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("checkpointer")),
  )
/** Returns whether a process holds the lock under which the server is started. */
const isStarting = (where: string) => {
  const database = new DatabaseSync(path.join(where, "pg18", "start.lock"))
  try {
    database.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE")
    return false
  } catch {
    return true
  } finally {
    database.close()
  }
}
const exitOf = (pid: number) =>
  eventually(
    async () => runs(pid),
    (alive) => !alive,
    20,
  )

/** Seconds in which the shell of a lease acts on a busy machine, whose disk may respond late. */
const patience = 60

/** Waits until SIGINT is pending for a suspended server. */
const pendingStop = (server: number) =>
  eventually(
    async () => /^ShdPnd:\s*(\w+)$/m.exec(readFileSync(`/proc/${server}/status`, "utf8"))?.[1],
    (signals) => (parseInt(signals ?? "0", 16) & 2) !== 0,
    patience,
  )

afterEach(async () => {
  for (const child of children) child.kill("SIGKILL")
  for (const where of directories) {
    if (existsSync(pidFile(where))) await exitOf(serverOf(where))
    rmSync(where, { recursive: true, force: true })
  }
  directories = []
  children = []
})

describe.skipIf(process.platform !== "linux")("the embedded database", () => {
  it("is shared by two processes that start together, and stops with the last one", async () => {
    const where = emptyDirectory()
    const [one, two] = await Promise.all([holder(where), holder(where)])
    await one.query("create table t as select 42 as n")
    expect(await two.query("select n from t")).toBe('[{"n":42}]')
    const server = serverOf(where)
    // Ctrl+C in the terminal must not reach the server: the service stops the server after its own work.
    const groupOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[2]
    expect(groupOf(server)).not.toBe(groupOf(one.child.pid!))
    await one.leave()
    expect(await two.query("select n from t")).toBe('[{"n":42}]')
    expect(runs(server)).toBe(true)
    await two.leave()
    await exitOf(server)
    expect(readdirSync(path.join(where, "pg18", "leases"))).toEqual([])
  })

  it("stops after kill -9 of its only process, keeps committed data, and starts despite a pid file of another program", async () => {
    const where = directory()
    const one = await holder(where)
    await one.query("create table t as select 1 as n")
    const server = serverOf(where)
    one.kill()
    await exitOf(server)
    const two = await holder(where)
    expect(await two.query("select n from t")).toBe('[{"n":1}]')
    const second = serverOf(where)
    const lines = readFileSync(pidFile(where), "utf8").split("\n")
    process.kill(second, "SIGKILL")
    two.kill()
    await exitOf(second)
    await eventually(
      async () => readdirSync(path.join(where, "pg18", "leases")),
      (leases) => leases.length === 0,
    )
    // After a restart of the machine, another process may have the recorded pid; here it is this process.
    writeFileSync(pidFile(where), [String(process.pid), ...lines.slice(1)].join("\n"))
    const three = await holder(where)
    expect(await three.query("select n from t")).toBe('[{"n":1}]')
    await three.leave()
  })

  it("shuts down cleanly when its last process is killed during the start", async () => {
    const where = directory()
    const one = await holder(where)
    await one.query("create table t as select 3 as n")
    const server = serverOf(where)
    process.kill(server, "SIGSTOP")
    try {
      // The server has a pending SIGINT, and cannot handle it before its last process is killed.
      one.child.stdin!.end()
      await pendingStop(server)
      one.kill()
      await ended(one.child)
      expect(runs(server)).toBe(true)
    } finally {
      process.kill(server, "SIGCONT")
    }
    await exitOf(server)
    const two = await holder(where)
    expect(await two.query("select n from t")).toBe('[{"n":3}]')
    await two.leave()
  })

  it("starts again for a process that opens it during its shutdown", async () => {
    const where = directory()
    const one = await holder(where)
    await one.query("create table t as select 5 as n")
    const server = serverOf(where)
    // The checkpointer ends last, so the shutdown lasts as long as the checkpointer is suspended.
    const checkpointer = checkpointerOf(server)
    process.kill(checkpointer, "SIGSTOP")
    try {
      one.kill()
      await eventually(
        async () => readFileSync(pidFile(where), "utf8"),
        (text) => text.includes("stopping"),
      )
      const two = holder(where)
      await eventually(
        async () => isStarting(where),
        (yes) => yes,
        20,
      )
      process.kill(checkpointer, "SIGCONT")
      await exitOf(server)
      expect(await (await two).query("select n from t")).toBe('[{"n":5}]')
      await (await two).leave()
    } finally {
      if (runs(checkpointer)) process.kill(checkpointer, "SIGCONT")
    }
  })

  it("opens while the server of a killed process is being stopped, once that has ended", async () => {
    const where = directory()
    const one = await holder(where)
    await one.query("create table t as select 4 as n")
    const next = await loaded(where)
    const server = serverOf(where)
    process.kill(server, "SIGSTOP")
    let opened: string | undefined
    try {
      one.kill()
      await pendingStop(server)
      void next.open().then((line) => (opened = line))
      await eventually(
        async () => readdirSync(path.join(where, "pg18", "leases")),
        (leases) => leases.length === 1,
        patience,
      )
      // The suspended server has not handled the signal yet, so it still accepts connections.
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(opened).toBeUndefined()
    } finally {
      process.kill(server, "SIGCONT")
    }
    await eventually(
      async () => opened,
      (line) => line !== undefined,
      patience,
    )
    expect(opened).toBe("ready")
    expect(serverOf(where)).not.toBe(server)
    expect(await next.query("select n from t")).toBe('[{"n":4}]')
    await next.leave()
  })

  it("ends statements of a killed server that still hold its memory, and starts", async () => {
    const where = directory()
    const [one, two] = [await holder(where), await holder(where)]
    await one.query("create table t as select 5 as n")
    const endless = "select count(*) from generate_series(1, 1000000000000) as endless"
    one.child.stdin.write(`${endless}\n`)
    await eventually(
      () =>
        two.query(`select count(*)::int as n from pg_stat_activity where state = 'active' and query like '%endless'`),
      (rows) => rows === '[{"n":1}]',
    )
    const next = await loaded(where)
    process.kill(serverOf(where), "SIGKILL")
    for (const killed of [one, two]) killed.kill()
    expect(await next.open()).toBe("ready")
    expect(await next.query("select n from t")).toBe('[{"n":5}]')
    await next.leave()
  })

  it("starts despite lock files that a killed server left empty", async () => {
    const where = directory()
    const one = await holder(where)
    await one.query("create table t as select 6 as n")
    await one.leave()
    for (const lock of [pidFile(where), path.join(where, "pg18", ".s.PGSQL.5432.lock")]) {
      writeFileSync(lock, "")
      utimesSync(lock, new Date(), new Date(Date.now() - 60_000))
    }
    const two = await holder(where)
    expect(await two.query("select n from t")).toBe('[{"n":6}]')
    await two.leave()
  })

  it("is restarted when it crashes", async () => {
    const where = directory()
    const one = await holder(where)
    await one.query("create table t as select 7 as n")
    const server = serverOf(where)
    process.kill(server, "SIGKILL")
    await eventually(
      async () => (existsSync(pidFile(where)) ? serverOf(where) : server),
      (pid) => pid !== server && runs(pid),
    )
    expect(
      await eventually(
        () => one.query("select n from t"),
        (answer) => answer.startsWith("[{"),
      ),
    ).toBe('[{"n":7}]')
    await one.leave()
  })

  it.skipIf(process.getuid?.() !== 0)(
    "lies elsewhere when the account it runs as cannot enter the directory",
    async () => {
      const where = emptyDirectory()
      chmodSync(where, 0o700)
      const one = await holder(where)
      expect(await one.query("select current_setting('data_directory') as at")).toMatch("/var/lib/svc-postgres-")
      expect(existsSync(path.join(where, "pg18"))).toBe(false)
      const [{ at }] = JSON.parse(await one.query("select current_setting('data_directory') as at"))
      await one.leave()
      rmSync(path.join(at, "..", ".."), { recursive: true, force: true })
    },
  )
})

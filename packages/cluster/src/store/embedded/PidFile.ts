/** Reads `postmaster.pid`, checks whether its server still runs, and repairs it after a crash. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { windows } from "./Binaries.ts"

export interface Running {
  readonly pid: number
  readonly port: number
  readonly socket: string
  readonly ready: boolean
}

const file = (data: string) => path.join(data, "postmaster.pid")

/**
 * Returns whether the pid is a running PostgreSQL. `kill(pid, 0)` also succeeds for a zombie (in a container without a reaping init) and
 * for another program that got the same pid.
 */
const isPostgres = (pid: number): boolean => {
  try {
    if (process.platform === "linux") {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
      return stat.includes("(postgres)") && !/\) [ZX] /.test(stat)
    }
    if (windows) {
      process.kill(pid, 0)
      return true
    }
    const listed = spawnSync("ps", ["-o", "stat=,comm=", "-p", String(pid)], { encoding: "utf8" }).stdout
    return listed.includes("postgres") && !listed.trim().startsWith("Z")
  } catch {
    return false
  }
}

const lines = (data: string): ReadonlyArray<string> | undefined => {
  try {
    return fs.readFileSync(file(data), "utf8").split("\n")
  } catch {
    return undefined
  }
}

/** Returns the running server of this data directory, or undefined. */
export const running = (data: string): Running | undefined => {
  const text = lines(data)
  if (text === undefined) return undefined
  const pid = Number(text[0])
  return isPostgres(pid)
    ? { pid, port: Number(text[3]), socket: `${text[4]}/.s.PGSQL.${text[3]}`, ready: text[7]?.trim() === "ready" }
    : undefined
}

/** A server writes its lock file right after creating it, so a file that is still empty after a second belongs to a killed server. */
const isHalfWritten = (lock: string): boolean => {
  const stat = fs.statSync(lock, { throwIfNoEntry: false })
  return stat?.size === 0 && Date.now() - stat.mtimeMs > 1000
}

/** Removes lock files of sockets whose server has ended. */
export const clearStaleSockets = (directory: string): void => {
  for (const name of fs.readdirSync(directory).filter((name) => /^\.s\.PGSQL\.\d+\.lock$/.test(name))) {
    const lock = path.join(directory, name)
    const pid = Number(fs.readFileSync(lock, "utf8").split("\n")[0])
    if (pid === 0 ? isHalfWritten(lock) : !isPostgres(pid)) fs.rmSync(lock, { force: true })
  }
}

/**
 * Ends the remaining processes of a killed server, which hold its shared memory and may run a statement for a long time.
 * Only Linux shows which processes these are; on other systems the start waits for them.
 */
export const endOrphans = (data: string): void => {
  if (process.platform !== "linux" || running(data) !== undefined) return
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (fs.readlinkSync(`/proc/${pid}/cwd`) === data && isPostgres(Number(pid))) process.kill(Number(pid), "SIGQUIT")
    } catch {
      // The process belongs to another account or has ended meanwhile.
    }
  }
}

/** A pid above every kernel's limit, which no process can have. */
const nobody = "2147483646"

/**
 * Replaces the pid in a stale file by one that cannot exist. PostgreSQL trusts `kill(pid, 0)`, so a zombie or a reused pid would block
 * every start; its own check of shared memory still applies. The file of a running server is never changed, because a postmaster shuts down
 * if its file changes.
 */
export const clearStale = (data: string): void => {
  const text = lines(data)
  if (isHalfWritten(file(data))) return fs.rmSync(file(data), { force: true })
  const pid = Math.abs(Number(text?.[0]))
  if (text === undefined || !pid || isPostgres(pid)) return
  try {
    process.kill(pid, 0)
  } catch (error) {
    // No process has this pid, which PostgreSQL detects itself.
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return
  }
  fs.writeFileSync(file(data), [nobody, ...text.slice(1)].join("\n"))
  if (text[4]) fs.rmSync(`${text[4]}/.s.PGSQL.${text[3]}.lock`, { force: true })
}

/** Reads CPU and memory of processes from /proc; returns nothing on systems without it (macOS, Windows). */
import { existsSync, readdirSync, readFileSync } from "node:fs"

export const measurable = existsSync("/proc/self/task")

const text = (file: string) => {
  try {
    return readFileSync(file, "latin1")
  } catch {
    return ""
  }
}

/** Returns the fields of /proc/<pid>/stat after the name, which may contain spaces: state, parent, … */
const statOf = (pid: number) => text(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ")

/** Returns the CPU time of a process's threads in nanoseconds. */
const nanosOf = (pid: number): number => {
  try {
    return readdirSync(`/proc/${pid}/task`).reduce(
      (sum, thread) => sum + Number(text(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0]),
      0,
    )
  } catch {
    return 0
  }
}

/** Returns the processes of a server such as PostgreSQL, Postfix or Dovecot: the master process and its children. */
export const family = (postmaster: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid === postmaster || (pid > 0 && Number(statOf(pid)[1]) === postmaster))

/** Returns a meter for the CPU time in nanoseconds since its creation. Processes that have ended are not counted. */
export const meter = (pids: () => ReadonlyArray<number>): (() => number) => {
  const before = new Map(pids().map((pid) => [pid, nanosOf(pid)]))
  return () => pids().reduce((sum, pid) => sum + nanosOf(pid) - (before.get(pid) ?? 0), 0)
}

/**
 * Returns the CPU time of a process since its start in milliseconds, including ended threads; the clock has a
 * resolution of 10.
 */
export const millisOf = (pid: number): number => {
  const fields = statOf(pid)
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Returns the CPU time of a server and all its child processes, including those that have ended. */
export const millisOfFamily = (master: number): number =>
  family(master).reduce((sum, pid) => {
    const fields = statOf(pid)
    return sum + [11, 12, 13, 14].reduce((ticks, at) => ticks + Number(fields[at] ?? 0), 0) * 10
  }, 0)

export interface Memory {
  /** Megabytes in memory. */
  readonly resident: number
  /** Private memory of the process, and mapped files (the program and its libraries). */
  readonly own: number
  readonly files: number
}

export const memoryOf = (pid: number): Memory => {
  const status = text(`/proc/${pid}/status`)
  const field = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
  return { resident: field("VmRSS"), own: field("RssAnon"), files: field("RssFile") }
}

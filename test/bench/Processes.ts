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

/** The fields of /proc/<pid>/stat after the name, which may hold spaces: state, parent, … */
const statOf = (pid: number) => text(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ")

/** Nanoseconds that the threads of a process have been on a CPU. */
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

/** A server of many processes (PostgreSQL, Postfix, Dovecot): its first one and those that this one began. */
export const family = (postmaster: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid === postmaster || (pid > 0 && Number(statOf(pid)[1]) === postmaster))

/** A meter that says how many nanoseconds of CPU went by since it was made. A process that is gone says nothing. */
export const meter = (pids: () => ReadonlyArray<number>): (() => number) => {
  const before = new Map(pids().map((pid) => [pid, nanosOf(pid)]))
  return () => pids().reduce((sum, pid) => sum + nanosOf(pid) - (before.get(pid) ?? 0), 0)
}

/** Milliseconds of CPU of a process since it began, threads that are gone included; a tick of the clock is 10. */
export const millisOf = (pid: number): number => {
  const fields = statOf(pid)
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The same of a server and all processes that it began, those that are gone included. */
export const millisOfFamily = (master: number): number =>
  family(master).reduce((sum, pid) => {
    const fields = statOf(pid)
    return sum + [11, 12, 13, 14].reduce((ticks, at) => ticks + Number(fields[at] ?? 0), 0) * 10
  }, 0)

export interface Memory {
  /** Megabytes in memory. */
  readonly resident: number
  /** Of those: what the process made itself, and pages of files (the program and its libraries). */
  readonly own: number
  readonly files: number
}

export const memoryOf = (pid: number): Memory => {
  const status = text(`/proc/${pid}/status`)
  const field = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
  return { resident: field("VmRSS"), own: field("RssAnon"), files: field("RssFile") }
}

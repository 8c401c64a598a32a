/**
 * The PostgreSQL servers of the tests and their initial database, which is created and migrated once and copied for
 * each server. The files are in memory if enough is free: a database has 800 files that are created and removed with
 * it, and disk file systems become slower the more files were just removed.
 */
import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Database from "@svc/cluster/store/Database"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { migrate } from "@svc/cluster/store/Migrations"
import { Effect, Layer } from "effect"

const memory = "/dev/shm"
const cache = path.join(import.meta.dirname, "..", "..", "node_modules", ".cache")
const gigabyte = 1024 ** 3
const stem = "svc-test-"

const hasRoom = () => {
  if (!existsSync(memory) || os.freemem() < 8 * gigabyte) return false
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize > 4 * gigabyte
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Creates a temporary folder for this run and removes those of killed runs. */
export const folder = () => {
  const place = hasRoom() ? memory : cache
  mkdirSync(place, { recursive: true })
  for (const name of readdirSync(place).filter((one) => one.startsWith(stem))) {
    if (!isAlive(Number(name.slice(stem.length).split("-")[0])))
      rmSync(path.join(place, name), { recursive: true, force: true })
  }
  const made = mkdtempSync(path.join(place, `${stem}${process.pid}-`))
  // The server's user must be able to traverse it.
  chmodSync(made, 0o755)
  return made
}

/**
 * Returns a folder in it for temporary files of the tests, including data directories of services; undefined if it is
 * no better than the default, or cannot run programs, as the memory file system of containers.
 */
export const temporary = (home: string): string | undefined => {
  if (!home.startsWith(memory)) return undefined
  const program = path.join(home, "program")
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 })
  if (spawnSync(program).status !== 0) return undefined
  const made = path.join(home, "tmp")
  mkdirSync(made)
  chmodSync(made, 0o1777)
  return made
}

/** Prepares a data directory with a migrated database that no server uses. */
export const prepare = (directory: string) =>
  EmbeddedPostgres.open({ directory, settings: { fsync: "off" } }).pipe(
    Effect.flatMap(({ connection }) => Effect.provide(migrate, Layer.fresh(Database.layer(connection)))),
    Effect.scoped,
  )

/** The log entry for a deadlock. PostgreSQL aborts one of the statements, which then looks like an outage. */
const deadlock = /ERROR: {2}deadlock detected[^]*?(?=\n\S* \S* UTC \[\d+\] (?!DETAIL|HINT|CONTEXT|STATEMENT))/g

/**
 * Fails if statements on the server of this data directory were deadlocked, which means that their locks have no order.
 */
export const refuseDeadlocks = (directory: string): void => {
  const log = path.join(directory, "pg18", "postgres.log")
  const found = existsSync(log) ? (readFileSync(log, "utf8").match(deadlock) ?? []) : []
  if (found.length > 0) throw new Error(`${found.length} times statements waited for one another:\n${found[0]}`)
}

/** Name of the variable with the prepared database for services of a test run (`Deployment`). */
export const preparedName = "SVC_TEST_PREPARED"

/** Copies the database for a server that has not started yet. */
export const copy = (from: string, to: string) => {
  const [source, target] = [path.join(from, "pg18"), path.join(to, "pg18")]
  mkdirSync(to, { recursive: true })
  if (process.platform === "win32") cpSync(source, target, { recursive: true })
  else execFileSync("cp", ["-a", source, target])
}

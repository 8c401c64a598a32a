/**
 * Where the PostgreSQL servers of the tests are, and the database that they begin with: made and migrated once, and copied
 * for each server. In memory, where the machine has it to spare: a test's own database is 800 files, made for it and
 * removed with it, and a file system on a disk takes ever longer to make files where so many were just removed.
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

/** A folder for this run, of which nothing stays; what runs left that were killed goes now. */
export const folder = () => {
  const place = hasRoom() ? memory : cache
  mkdirSync(place, { recursive: true })
  for (const name of readdirSync(place).filter((one) => one.startsWith(stem))) {
    if (!isAlive(Number(name.slice(stem.length).split("-")[0])))
      rmSync(path.join(place, name), { recursive: true, force: true })
  }
  const made = mkdtempSync(path.join(place, `${stem}${process.pid}-`))
  // The server's account comes through it.
  chmodSync(made, 0o755)
  return made
}

/**
 * A folder in it for temporary files of the tests, data directories of services among them; undefined where it is no better
 * a place than the usual one, or runs no program (containers have such memory).
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

/** A data directory whose database is migrated; no server has it any more. */
export const prepare = (directory: string) =>
  EmbeddedPostgres.open({ directory, settings: { fsync: "off" } }).pipe(
    Effect.flatMap(({ connection }) => Effect.provide(migrate, Layer.fresh(Database.layer(connection)))),
    Effect.scoped,
  )

/** The log line of a deadlock. The server ends one of the statements, which then fails as unavailable. */
const deadlock = /ERROR: {2}deadlock detected[^]*?(?=\n\S* \S* UTC \[\d+\] (?!DETAIL|HINT|CONTEXT|STATEMENT))/g

/** Fails where statements of the server of this data directory waited for one another: their locks have no order. */
export const refuseDeadlocks = (directory: string): void => {
  const log = path.join(directory, "pg18", "postgres.log")
  const found = existsSync(log) ? (readFileSync(log, "utf8").match(deadlock) ?? []) : []
  if (found.length > 0) throw new Error(`${found.length} times statements waited for one another:\n${found[0]}`)
}

/** Where services of a run of the tests find the database that they begin with (`Deployment`). */
export const preparedName = "SVC_TEST_PREPARED"

/** The database of `from` for another server, which has yet to be started. */
export const copy = (from: string, to: string) => {
  const [source, target] = [path.join(from, "pg18"), path.join(to, "pg18")]
  mkdirSync(to, { recursive: true })
  if (process.platform === "win32") cpSync(source, target, { recursive: true })
  else execFileSync("cp", ["-a", source, target])
}

/** Checks this machine: Node, disk, open files, memory and clock. */
import { spawnSync } from "node:child_process"
import { accessSync, constants, existsSync, statfsSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Effect, Option } from "effect"
import type { Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

const found = Finding.of("machine")

const oldestNode = 24

export const node = Effect.sync(() => {
  const major = Number(process.versions.node.split(".")[0])
  return major >= oldestNode
    ? found("node", "ok", `${process.version} on ${process.platform}-${process.arch}`)
    : found(
        "node",
        "fail",
        `${process.version}`,
        "Install the package @agent-identity/server, which brings its own Node, or run it with a later one.",
      )
})

/** Returns the nearest existing parent directory. */
const existingParent = (directory: string): string =>
  existsSync(directory) ? directory : existingParent(path.dirname(path.resolve(directory)))

/** Minimum share of free inodes of the file system. */
const freeFiles = 0.1

export const data = ({ dataDirectory, databaseUrl }: Settings) =>
  Effect.sync(() => {
    if (Option.isSome(databaseUrl)) return found("data", "ok", "the database of DATABASE_URL")
    const place = existingParent(dataDirectory)
    try {
      accessSync(place, constants.W_OK)
    } catch {
      return found("data", "fail", `${place} is not writable`, "Set SVC_DATA_DIR to a directory that you can write to.")
    }
    const { bavail, bsize, files, ffree } = statfsSync(place)
    const gibibytes = (bavail * bsize) / 1024 ** 3
    const summary = `${path.resolve(dataDirectory)}, ${gibibytes.toFixed(1)} GiB free`
    if (gibibytes < 0.2) return found("data", "fail", summary, "Free some space, or set SVC_DATA_DIR to another disk.")
    if (gibibytes < 2) return found("data", "warn", summary, "Free some space before mail fills the disk.")
    return files > 0 && ffree / files < freeFiles
      ? found(
          "data",
          "warn",
          `${summary}, but ${ffree} of ${files} files`,
          "Free some inodes: the disk is full of small files.",
        )
      : found("data", "ok", summary)
  })

/** Memory of an idle process with all roles and its database. */
const enoughMemory = 1024 ** 3

export const memory = Effect.sync(() => {
  const gibibytes = (os.totalmem() / 1024 ** 3).toFixed(1)
  return os.totalmem() < enoughMemory
    ? found("memory", "warn", `${gibibytes} GiB`, "One process with its database needs 1 GiB.")
    : found("memory", "ok", `${gibibytes} GiB`)
})

/** File descriptors per tunnel connection: its socket, and a reserve. */
const filesPerConnection = 2

export const openFiles = ({ edgeConnections, environment }: Settings) =>
  Effect.sync(() => {
    if (process.platform === "win32") return []
    const { stdout } = spawnSync("/bin/sh", ["-c", "ulimit -n"], { encoding: "utf8" })
    const limit = stdout.trim() === "unlimited" ? Number.POSITIVE_INFINITY : Number(stdout)
    const wanted = edgeConnections * filesPerConnection
    // A development machine has few connections.
    if (Number.isNaN(limit) || environment === "development") return []
    return [
      limit < wanted
        ? found(
            "open files",
            "warn",
            `at most ${limit}, and SVC_EDGE_CONNECTIONS lets ${edgeConnections} connections in`,
            `Raise the limit (LimitNOFILE=${wanted} in systemd, ulimit -n ${wanted}), or lower SVC_EDGE_CONNECTIONS.`,
          )
        : found("open files", "ok", `at most ${limit}`),
    ]
  })

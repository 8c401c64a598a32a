/** Creates a database cluster, starts its server, and waits until it accepts connections. */
import { spawn, spawnSync } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { connect, createServer } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import type { Account } from "./Binaries.ts"
import { executable, windows } from "./Binaries.ts"
import { clearStale, clearStaleSockets, type Running, running } from "./PidFile.ts"

export interface Installation {
  readonly home: string
  readonly native: string
  readonly account: Account
  /** Additional settings for `postgres -c`. */
  readonly settings: Readonly<Record<string, string>>
}

export const superuser = "svc"
export const dataOf = (home: string) => path.join(home, "data")
/** Returns whether a complete database exists. */
export const hasData = (home: string) => fs.existsSync(path.join(dataOf(home), "PG_VERSION"))
const logOf = (home: string) => path.join(home, "postgres.log")
const environment = (): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  LC_ALL: "C",
  SYSTEMROOT: process.env["SYSTEMROOT"],
  TEMP: process.env["TEMP"],
})

const own = (file: string, { uid, gid }: Account) => {
  if (uid !== undefined && gid !== undefined) fs.chownSync(file, uid, gid)
}

/** Creates the folders with the permissions that the server requires. */
export const prepare = (home: string, account: Account) => {
  for (const folder of ["leases", "leaving"]) fs.mkdirSync(path.join(home, folder), { recursive: true })
  own(home, account)
  fs.chmodSync(home, 0o700)
}

/** Returns the password of the only role. It is created once and readable by its owner only. */
export const password = (home: string, account: Account): string => {
  const file = path.join(home, "password")
  if (!fs.existsSync(file)) {
    fs.writeFileSync(file, randomBytes(24).toString("base64url"), { mode: 0o600 })
    own(file, account)
  }
  return fs.readFileSync(file, "utf8")
}

/** PostgreSQL requires an account with a name, but containers often run as a number without one. */
const nameless = ({ uid = process.getuid?.() }: Account) =>
  `PostgreSQL cannot be started as uid ${uid}, which has no name on this machine: run as a user that /etc/passwd names (in a container: a line "svc:x:${uid}:${uid}::/:/bin/sh" there), or set DATABASE_URL to use a server of your own.`

/** Creates the database cluster if it does not exist. A temporary folder is renamed at the end, so a kill leaves no partial cluster. */
export const initialise = ({ home, native, account }: Installation) => {
  if (hasData(home)) return
  for (const left of fs.readdirSync(home).filter((name) => name.startsWith("init-"))) {
    // An initdb whose process was killed may still be writing.
    fs.rmSync(path.join(home, left), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
  const aside = path.join(home, `init-${process.pid}`)
  const made = spawnSync(
    executable(native, "initdb"),
    [
      `--pgdata=${aside}`,
      `--username=${superuser}`,
      "--auth=scram-sha-256",
      `--pwfile=${path.join(home, "password")}`,
      "--encoding=UTF8",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--locale=C",
    ],
    { ...account, env: environment(), cwd: home, encoding: "utf8" },
  )
  if (made.status !== 0 && /could not look up effective user ID/.test(made.stderr)) throw new Error(nameless(account))
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error?.message ?? made.stderr}`)
  fs.renameSync(aside, dataOf(home))
}

/**
 * Returns the folder of the socket. The path of a socket has at most 107 bytes (`sockaddr_un`), so a long home gets another folder, always
 * the same one.
 */
const socketDirectory = (home: string, account: Account): string => {
  if (home.length < 80) return home
  const name = createHash("sha256").update(home).digest("hex").slice(0, 12)
  const directory = path.join(os.tmpdir(), `svc-pg-${name}`)
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
  own(directory, account)
  return directory
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

const logLimit = 10 * 1024 * 1024

const openLog = (home: string): number => {
  const log = logOf(home)
  if ((fs.statSync(log, { throwIfNoEntry: false })?.size ?? 0) > logLimit) fs.renameSync(log, `${log}.1`)
  return fs.openSync(log, "a")
}

/** A server that was started. */
export interface Launch {
  /** The position in the log at which the output of this start begins. */
  readonly log: number
  readonly hasExited: () => boolean
}

/** Starts the server detached, so that Ctrl-C reaches only this process, which drains before it stops the server. */
export const start = async ({ home, native, account, settings }: Installation): Promise<Launch> => {
  const data = dataOf(home)
  clearStale(data)
  if (!windows) clearStaleSockets(socketDirectory(home, account))
  const listening = windows
    ? { listen_addresses: "127.0.0.1", port: String(await freePort()) }
    : { listen_addresses: "", unix_socket_directories: socketDirectory(home, account), unix_socket_permissions: "0700" }
  const all = {
    ...listening,
    wal_level: "minimal",
    max_wal_senders: "0",
    log_checkpoints: "off",
    // A failing statement's parameters may be secrets.
    log_parameter_max_length_on_error: "0",
    ...settings,
  }
  const arguments_ = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const log = openLog(home)
  const { size } = fs.fstatSync(log)
  // pg_ctl waits until the server is ready or has failed.
  let hasExited = windows
  if (windows) {
    // `pg_ctl` drops administrator rights, with which the server refuses to run.
    const options = arguments_.map((argument) => `"${argument}"`).join(" ")
    spawnSync(executable(native, "pg_ctl"), ["start", "-D", data, "-l", logOf(home), "-w", "-o", options])
  } else {
    const server = spawn(executable(native, "postgres"), ["-D", data, ...arguments_], {
      ...account,
      env: environment(),
      cwd: home,
      detached: true,
      stdio: ["ignore", log, log],
    })
    for (const event of ["exit", "error"]) server.once(event, () => (hasExited = true))
    server.unref()
  }
  fs.closeSync(log)
  return { log: size, hasExited: () => hasExited }
}

export const stop = (native: string, home: string) => {
  spawnSync(executable(native, "pg_ctl"), ["stop", "-D", dataOf(home), "-m", "fast", "-w"])
}

/** The request for TLS (PostgreSQL's SSLRequest), which a server answers before anything else. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/**
 * Returns the server if it answers now. The kernel accepts connections for a server that is stuck or being killed, so a
 * connection alone proves nothing.
 */
export const accepting = (home: string): Promise<Running | undefined> => {
  const server = running(dataOf(home))
  if (server?.ready !== true) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const socket = windows ? connect(server.port, "127.0.0.1") : connect(server.socket)
    socket.once("connect", () => socket.write(sslRequest))
    socket.once("data", () => (socket.destroy(), resolve(server)))
    socket.on("error", () => {})
    socket.once("close", () => resolve(undefined))
  })
}

/** Matches what PostgreSQL logs if a start fails because of files or shared memory of a killed server. */
const remains = /pre-existing shared memory block|lock file ".*" (?:already exists|is empty)/

/** Returns whether a start failed only because of the remains of a killed server, by the log from a position on. */
export const metRemains = (home: string, from: number): boolean => {
  try {
    return remains.test(fs.readFileSync(logOf(home)).subarray(from).toString())
  } catch {
    return false
  }
}

export const lastLogLines = (home: string): string => {
  try {
    return fs.readFileSync(logOf(home), "utf8").split("\n").slice(-12).join("\n")
  } catch {
    return ""
  }
}

/**
 * The database of another major version of PostgreSQL beside ours. Folders are named by the version (`pg18`), and the
 * binaries of one version cannot read the data of another.
 */
export interface OtherMajorVersion {
  readonly home: string
  readonly major: number
}

/** Returns the latest other version that has data, or undefined. */
export const findOtherMajorVersion = (home: string): OtherMajorVersion | undefined => {
  const [own, folder] = [path.basename(home), path.dirname(home)]
  if (!fs.existsSync(folder)) return undefined
  return fs
    .readdirSync(folder)
    .filter((name) => /^pg\d+$/.test(name) && name !== own)
    .map((name) => ({ home: path.join(folder, name), major: Number(name.slice(2)) }))
    .filter((one) => hasData(one.home))
    .toSorted((one, other) => other.major - one.major)[0]
}

/** Throws if only another major version has data, because a start would serve an empty database in its place. */
export const refuseOtherMajorVersion = (home: string): void => {
  if (hasData(home)) return
  const former = findOtherMajorVersion(home)
  if (former === undefined) return
  const ours = Number(path.basename(home).slice(2))
  throw new Error(
    former.major < ours
      ? `${path.dirname(home)} holds a database of PostgreSQL ${former.major}, and this version brings ${ours}: stop the service, and run \`svc upgrade-store\` once. (Or take a backup with the version that made it, move ${path.basename(former.home)} away, and restore it with this one: svc backup, svc restore.)`
      : `${path.dirname(home)} holds a database of PostgreSQL ${former.major}, and this version brings ${ours}, which cannot read it: run the version that made it.`,
  )
}

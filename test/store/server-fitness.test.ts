/**
 * Checks of the PostgreSQL server of `DATABASE_URL` at start: an unsuitable server is rejected with one sentence before anything changes.
 */
import { execFile, execFileSync, spawn } from "node:child_process"
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { type AddressInfo, connect, createServer } from "node:net"
import * as path from "node:path"
import type { PgClient } from "@effect/sql-pg"
import * as Database from "@svc/cluster/store/Database"
import { refuse } from "@svc/cluster/store/Migrations"
import { type Facts, faultsOf, look, refuseUnfit } from "@svc/cluster/store/ServerFitness"
import { findings } from "@svc/cli/doctor/Store"
import type { Settings } from "@svc/cli/serve/Settings"
import { Cause, Effect, Exit, Layer, Option, Redacted } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { connection, makeDatabase } from "../harness/Database.ts"
import { freePort } from "../harness/Ports.ts"
import { has } from "../harness/Programs.ts"

const main = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.mjs")
const svc = (words: ReadonlyArray<string>, url: string) =>
  new Promise<{ code: unknown; text: string }>((resolve) => {
    const env = { PATH: process.env["PATH"], SVC_OPS_PORT: "0", DATABASE_URL: url }
    execFile(process.execPath, [main, ...words], { env }, (error, out, err) =>
      resolve({ code: error?.code ?? 0, text: `${out}${err}` }),
    )
  })

const ended: Array<() => void> = []
afterAll(() => ended.reverse().forEach((end) => end()))

/** PostgreSQL and PgBouncer refuse to run as root. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
const folder = () => {
  const made = mkdtempSync(path.join(tmpdir(), "fitness-"))
  ended.push(() => rmSync(made, { recursive: true, force: true }))
  chmodSync(made, 0o755)
  if (nobody.uid !== undefined) chownSync(made, nobody.uid, nobody.gid)
  return made
}

const inDatabase = <A, E>(settings: Database.ConnectionSettings, effect: Effect.Effect<A, E, Clients>) =>
  Effect.runPromiseExit(Effect.provide(effect, Layer.fresh(Database.layer(settings))))
type Clients = Database.Reads | Database.Writes | Database.Unhurried | Database.ClusterSql

const statement = async (settings: Database.ConnectionSettings, text: string) => {
  const exit = await inDatabase(
    settings,
    Effect.flatMap(Database.Unhurried, (sql) => sql.unsafe<Record<string, unknown>>(text)),
  )
  if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  return exit.value
}

const messageOf = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isFailure(exit) ? String((Cause.squash(exit.cause) as Error).message) : "it was not refused"

const administrator = () => ({ ...connection(), database: "postgres" })

describe("the problems of a server", () => {
  const sound: Facts = {
    version: 180_001,
    encoding: "UTF8",
    connections: Database.connectionsPerProcess,
    limit: "max_connections of the server",
    readOnly: false,
    mayCreate: true,
  }
  const names = (other: Partial<Facts>) => faultsOf({ ...sound, ...other }).map(({ name }) => name)

  it("are reported by the first insufficient version, encoding, connection limit or privilege", () => {
    expect(names({})).toEqual([])
    expect(names({ version: 179_999 })).toEqual(["version"])
    expect(names({ version: 180_000 })).toEqual([])
    expect(names({ version: 190_000 })).toEqual([])
    expect(names({ encoding: "SQL_ASCII" })).toEqual(["encoding"])
    expect(names({ connections: Database.connectionsPerProcess - 1 })).toEqual(["connections"])
    expect(names({ readOnly: true })).toEqual(["primary"])
    expect(names({ mayCreate: false })).toEqual(["privileges"])
    expect(names({ version: 150_000, encoding: "LATIN1" })).toEqual(["version", "encoding"])
  })
})

describe("a PostgreSQL 18", () => {
  it("is refused for a database whose encoding cannot store all text", async () => {
    const latin = { ...connection(), database: "fitness_latin" }
    await statement(
      administrator(),
      "create database fitness_latin encoding 'LATIN1' locale_provider builtin builtin_locale 'C' locale 'C' template template0",
    )
    try {
      expect(messageOf(await inDatabase(latin, refuse))).toMatch(/encoding is LATIN1.*createdb --encoding=UTF8/)
    } finally {
      await statement(administrator(), "drop database fitness_latin with (force)")
    }
  })

  it("is refused for a role that may open too few connections or create no tables", async () => {
    const { settings, drop } = await makeDatabase()
    await statement(settings, "create role fitness_guest login password 'guest' connection limit 5")
    const guest = { ...settings, username: "fitness_guest", password: Redacted.make("guest") }
    try {
      expect(messageOf(await inDatabase(guest, refuseUnfit))).toMatch(
        /the connection limit of the role leaves 5 connections, and a process opens up to \d+/,
      )
      await statement(settings, "alter role fitness_guest connection limit -1")
      expect(messageOf(await inDatabase(guest, refuseUnfit))).toContain("may not create tables")
      await statement(settings, "grant create on schema public to fitness_guest")
      expect(Exit.isSuccess(await inDatabase(guest, refuseUnfit))).toBe(true)
    } finally {
      await drop()
      await statement(administrator(), "drop role fitness_guest")
    }
  })

  it("may have any time zone: every session uses UTC", async () => {
    const { settings, drop } = await makeDatabase()
    try {
      await statement(settings, `alter database ${settings.database} set timezone = 'Pacific/Kiritimati'`)
      for (const pool of [Database.Reads, Database.Writes, Database.Unhurried, Database.ClusterSql] as const) {
        const zone = Effect.andThen(
          Effect.service<Database.Reads, PgClient.PgClient>(pool as never),
          (sql) => sql`select current_setting('TimeZone') as zone`,
        )
        const exit = await inDatabase(settings, zone)
        expect(exit).toMatchObject({ value: [{ zone: "UTC" }] })
      }
    } finally {
      await drop()
    }
  })
})

describe.skipIf(!has("postgres15"))("a PostgreSQL 15", () => {
  it("is refused in one sentence by serve, migrate and migrate --check, and stays empty", async () => {
    const bin = "/usr/lib/postgresql/15/bin"
    const home = folder()
    const data = path.join(home, "data")
    const port = await freePort()
    execFileSync(path.join(bin, "initdb"), ["-D", data, "-U", "svc", "-A", "trust", "-E", "UTF8", "--no-sync"], nobody)
    const server = spawn(
      path.join(bin, "postgres"),
      ["-D", data, "-p", String(port), "-h", "127.0.0.1", "-k", home, "-F"],
      { ...nobody, stdio: "ignore" },
    )
    ended.push(() => server.kill("SIGQUIT"))
    const settings = { host: "127.0.0.1", port, username: "svc", database: "postgres" }
    await expect
      .poll(() =>
        statement(settings, "select 1").then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    const sentence =
      /^svc: The database cannot carry the service: the server is PostgreSQL 15, and the service needs 18 or later\. To go on, upgrade it[^\n]*\n$/
    for (const words of [["serve"], ["migrate"], ["migrate", "--check"]]) {
      const { code, text } = await svc(words, `postgres://svc@127.0.0.1:${port}/postgres`)
      expect(text).toMatch(sentence)
      expect(code).toBe(1)
    }
    expect(await statement(settings, "select from pg_class where relnamespace = 'public'::regnamespace")).toEqual([])
  })
})

/** Starts PgBouncer in front of this worker's PostgreSQL, with the given pool mode and pool size. */
const pooler = async (mode: string, size: number, database: string) => {
  const home = folder()
  const port = await freePort()
  const { host, path: socket, port: at, username, password } = connection()
  const place = host ?? path.dirname(socket!)
  const serverPort = at ?? Number(path.extname(socket!).slice(1))
  writeFileSync(path.join(home, "users"), `"${username}" "${Redacted.value(password)}"\n`)
  writeFileSync(
    path.join(home, "ini"),
    `[databases]\n* = host=${place} port=${serverPort}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = plain\nauth_file = ${home}/users\npool_mode = ${mode}\ndefault_pool_size = ${size}\n`,
  )
  // Only the account that runs the server may enter the folder of its socket.
  const { uid, gid } = socket === undefined ? { uid: nobody.uid, gid: nobody.gid } : statSync(place)
  const account = process.getuid?.() === 0 && uid !== undefined && gid !== undefined ? { uid, gid } : {}
  const child = spawn("/usr/sbin/pgbouncer", [path.join(home, "ini")], { ...account, stdio: "ignore" })
  ended.push(() => child.kill("SIGKILL"))
  const settings = { host: "127.0.0.1", port, username, password, database }
  await expect
    .poll(() =>
      statement(settings, "select 1").then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  return settings
}

describe.skipIf(!has("pgbouncer"))("PgBouncer", () => {
  it("serves the service in session mode with the settings of every session", async () => {
    const { settings: direct, drop } = await makeDatabase()
    try {
      const settings = await pooler("session", Database.connectionsPerProcess, direct.database!)
      expect(messageOf(await inDatabase(settings, refuse))).toBe("it was not refused")
      const shown = await inDatabase(
        settings,
        Effect.all([
          Effect.flatMap(
            Database.Reads,
            (sql) =>
              sql`select current_setting('statement_timeout') as timeout, current_setting('default_transaction_read_only') as "readOnly"`,
          ),
          Effect.flatMap(Database.Writes, (sql) => sql`select current_setting('plan_cache_mode') as plans`),
          Effect.flatMap(Database.Reads, (sql) => Effect.flip(sql`create table written (id int)`)),
          // Migrations and exports may run for minutes.
          Effect.flatMap(Database.Unhurried, (sql) => sql`select current_setting('statement_timeout') as timeout`),
        ]),
      )
      expect(shown).toMatchObject({
        value: [
          [{ timeout: "5s", readOnly: "on" }],
          [{ plans: "force_generic_plan" }],
          expect.anything(),
          [{ timeout: "0" }],
        ],
      })
    } finally {
      await drop()
    }
  })

  it.each(["transaction", "statement"])("is refused in %s mode", async (mode) => {
    const settings = await pooler(mode, 40, "postgres")
    expect(messageOf(await inDatabase(settings, refuse))).toContain("in transaction or statement mode")
  })

  it("is refused in session mode if its pool has fewer connections than a process opens", async () => {
    const settings = await pooler("session", 4, "postgres")
    expect(messageOf(await inDatabase(settings, refuse))).toMatch(/gives this process fewer than \d+ sessions/)
  })
})

describe("a pooler that gives all its clients one session", () => {
  const shared = async (isShared: boolean) => {
    const { host, port, path: socket } = connection()
    const server = createServer((client) => {
      const session = connect(socket === undefined ? { host: host!, port: port! } : { path: socket })
      const ask = "pg_backend_pid()"
      const pid = isShared ? "4242".padEnd(ask.length) : ask
      client.on("data", (data) => session.write(data.toString("latin1").replaceAll(ask, pid), "latin1"))
      session.pipe(client)
      for (const [one, other] of [
        [client, session],
        [session, client],
      ] as const)
        one.on("error", () => other.destroy()).on("close", () => other.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    ended.push(() => server.close())
    return (server.address() as AddressInfo).port
  }

  it("is refused at the start, and named by the doctor", async () => {
    const { username, password } = connection()
    for (const isShared of [true, false]) {
      const port = await shared(isShared)
      const settings = { host: "127.0.0.1", port, username, password, database: "postgres" }
      const message = messageOf(await inDatabase(settings, refuse))
      expect(message).toContain(isShared ? "in transaction or statement mode" : "not refused")
      const url = Redacted.make(`postgresql://${username}:${Redacted.value(password)}@127.0.0.1:${port}/postgres`)
      const found = await Effect.runPromise(
        findings({ databaseUrl: Option.some(url), environment: "development" } as unknown as Settings),
      )
      const sessions = { status: "fail", detail: message, remedy: "Set DATABASE_URL to PostgreSQL itself." }
      expect(found.filter(({ name }) => name === "sessions")).toMatchObject(isShared ? [sessions] : [])
      expect(found.length).toBeGreaterThan(3)
    }
  })
})

describe("the sessions", () => {
  it("of runners do not wait for the disk; all others wait as the server is configured", async () => {
    const waits = (sql: PgClient.PgClient) => sql`
      select setting, source in ('client', 'session') as ours from pg_settings where name = 'synchronous_commit'`
    const shown = await inDatabase(
      administrator(),
      Effect.all([
        Effect.flatMap(Database.ClusterSql, waits),
        Effect.flatMap(Database.Writes, waits),
        Effect.flatMap(Database.Unhurried, waits),
      ]),
    )
    expect(shown).toMatchObject({ value: [[{ setting: "off", ours: true }], [{ ours: false }], [{ ours: false }]] })
  })
})

describe("the check of a server", () => {
  it("finds no problem in the server of the tests", async () => {
    const exit = await inDatabase(administrator(), Effect.flatMap(Database.Unhurried, look))
    expect(exit).toMatchObject({ value: { encoding: "UTF8", readOnly: false, mayCreate: true } })
  })
})

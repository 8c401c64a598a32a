/**
 * Restoring a backup elsewhere. If it was taken under load, everything acknowledged before is present and can be decrypted. If it was taken
 * without load, every row is equal. A backup that must not be restored is rejected before any file is created.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { PgClient } from "@effect/sql-pg"
import { clients } from "@svc/cli/backup/BackupLocation"
import * as Restore from "@svc/cli/backup/Restore"
import * as TakeBackup from "@svc/cli/backup/TakeBackup"
import * as UpgradeStore from "@svc/cli/backup/UpgradeStore"
import * as Verify from "@svc/cluster/audit/Verify"
import { inspect } from "@svc/cluster/backup/Manifest"
import * as Tables from "@svc/cluster/backup/Tables"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { ConfigProvider, Effect, Option } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { freePort } from "../harness/Ports.ts"
import { eventually } from "../harness/Service.ts"
import { copy, preparedName } from "../harness/TestServers.ts"
import { browser, obtainTokens, mcp, registerClient } from "../oauth/Consent.ts"

const root = mkdtempSync(path.join(os.tmpdir(), "svc-restore-"))
chmodSync(root, 0o755)
const place = (name: string) => {
  const directory = path.join(root, name)
  mkdirSync(directory, { recursive: true })
  chmodSync(directory, 0o755)
  return directory
}

const withSettings = <A, E>(directory: string, effect: Effect.Effect<A, E>, env: Record<string, string> = {}) =>
  Effect.runPromise(
    effect.pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SVC_DATA_DIR: directory, ...env })))),
  )

/** Runs the effect on the store of a data directory that no other process uses. */
const inStore = <A, E>(directory: string, effect: Effect.Effect<A, E, PgClient.PgClient>) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(EmbeddedPostgres.open({ directory }), ({ connection }) =>
        Effect.provide(effect, clients(connection)),
      ),
    ),
  )

/** Returns every row of every table as text in a fixed order, without the transaction id, which belongs to the server. */
const everything = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const found: Record<string, ReadonlyArray<string>> = {}
  for (const { name, columns } of yield* Tables.tables(sql)) {
    const rows = yield* sql.unsafe<{ row: string }>(
      `select row(${columns.map(Tables.quoted).join(", ")})::text as row from "${name}" order by 1`,
    )
    found[name] = rows.map(({ row }) => row)
  }
  return found
})

/** Returns how many deliveries wait for their next attempt, and how many of them a restore holds back. */
const waiting = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [row] = yield* sql<{ waiting: number; held: number }>`
    select count(*)::int as waiting, count(*) filter (where next_attempt_at > now() + interval '900 years')::int as held
    from delivery where next_attempt_at is not null`
  return row!
})

const source = place("source")
const [underLoad, atRest] = [path.join(root, "under-load.tar.zst"), path.join(place("folder"), "unused")]
const acknowledged = new Map<string, string>()
let certain: ReadonlyMap<string, string>
let session: string
let handle: string
let kept: string
/** The access token of an app, and the export of the audit log before the first backup. */
let access: string
let log: string

beforeAll(async () => {
  copy(process.env[preparedName]!, source)
  const deployment = await deploy({ directory: source })
  const { base, smtpPort } = await deployment.start()
  const person = await signUp(base)
  session = person.session
  handle = (await makeIdentity(base, session)).handle
  const token = session
  const client = (await registerClient(base, ["http://localhost:4711/callback"])).body["client_id"]
  access = (await obtainTokens(base, browser(base, session), client, "http://localhost:4711/callback")).access
  expect((await mcp(base, access, "tools/list")).status).toBe(200)
  // No server listens at this target, so its deliveries wait for their next attempt.
  const url = `http://127.0.0.1:${await freePort()}/`
  const hook = await call(base, "POST", `/api/identities/${handle}/webhooks`, {
    token,
    body: { url, event_types: ["*"] },
  })
  expect(hook.status).toBe(201)
  await send(smtpPort, {
    from: "grace@example.org",
    to: `${handle}@mail.localhost`,
    subject: "Larger than what travels in a message",
    text: "All work and no play. ".repeat(40_000),
  })
  await eventually(
    () => call(base, "GET", `/api/identities/${handle}/messages`, { token }),
    ({ body }) => body.messages.length === 1,
  )
  const put = async (n: number) => {
    const name = `secret.${n}`
    const value = `value of ${n} ${"x".repeat(n % 700)}`
    const { status } = await call(base, "PUT", `/api/vault/secrets/${name}`, { token, body: { value } })
    if (status < 300) acknowledged.set(name, value)
  }
  for (let n = 0; n < 20; n++) await put(n)
  await eventually(
    async () => (log = await exported(base)),
    (text) => verified(text).records > 20 && verified(text).faults.length === 0,
  )
  // Clients write from before the backup until after it.
  let isOver = false
  let next = 20
  const writers = Array.from({ length: 4 }, async () => {
    while (!isOver) await put(next++)
  })
  certain = new Map(acknowledged)
  await withSettings(source, TakeBackup.run(underLoad, Option.none()))
  isOver = true
  await Promise.all(writers)
  expect(acknowledged.size).toBeGreaterThan(certain.size)
  await deployment.stop()
  await withSettings(source, TakeBackup.run(path.dirname(atRest), Option.some(3)))
  kept = path.join(path.dirname(atRest), readdirSync(path.dirname(atRest))[0]!)
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Returns the sealed part of the audit log, and the result of its verification. */
const exported = async (base: string) => {
  const response = await fetch(`${base}/api/audit/export`, { headers: { authorization: `Bearer ${session}` } })
  return response.text()
}
const verified = (text: string) => {
  const walk = Verify.make()
  for (const line of text.split("\n")) walk.add(line)
  return walk.end()
}

const withKey = (name: string) => {
  const directory = place(name)
  copyFileSync(path.join(source, "master.key"), path.join(directory, "master.key"))
  return directory
}
const restored = (directory: string, file: string, options: Partial<Restore.RestoreOptions> = {}) =>
  withSettings(directory, Restore.run(file, { verify: false, keepSessions: true, ...options }))
const refusal = async (directory: string, file: string, env: Record<string, string> = {}) => {
  const failure = await withSettings(
    directory,
    Effect.flip(Restore.run(file, { verify: false, keepSessions: false })),
    env,
  )
  // The restore created neither a data directory nor temporary files.
  expect(readdirSync(directory).filter((name) => name !== "master.key")).toEqual([])
  return "message" in failure ? failure.message : String(failure)
}

/** A GET that is repeated while the store responds late (503), as right after a start on a busy machine. */
const read = (base: string, url: string) =>
  eventually(
    () => call(base, "GET", url, { token: session }),
    ({ status }) => status !== 503,
  )

describe("a restore", () => {
  describe("with a service that continues", () => {
    let deployment: Deployment
    let base: string
    beforeAll(async () => {
      const directory = withKey("loaded")
      await restored(directory, underLoad)
      deployment = await deploy({ directory })
      base = (await deployment.start()).base
    })
    afterAll(() => deployment?.stop())

    it("of a backup taken under load has everything that was acknowledged before, and the service continues", async () => {
      const token = session
      for (const [name, value] of certain) {
        const { body } = await read(base, `/api/vault/secrets/${name}/value`)
        expect(body.value, name).toBe(value)
      }
      // A secret that was written during the backup is restored completely or not at all.
      const list = await read(base, "/api/vault/secrets?limit=200")
      expect(list.body.secrets.length).toBeGreaterThanOrEqual(certain.size)
      for (const { name } of list.body.secrets as ReadonlyArray<{ name: string }>) {
        const { body } = await read(base, `/api/vault/secrets/${name}/value`)
        expect(body.value).toMatch(new RegExp(`^value of ${name.split(".")[1]} `))
      }
      const { body } = await call(base, "GET", `/api/identities/${handle}/messages`, { token })
      const message = await call(base, "GET", `/api/identities/${handle}/messages/${body.messages[0].id}`, { token })
      expect(message.body.text.trim()).toBe("All work and no play. ".repeat(40_000).trim())
      const repeated = await call(base, "PUT", "/api/vault/secrets/after", { token, body: { value: "later" } })
      expect(repeated.status).toBeLessThan(300)
      expect((await makeIdentity(base, token)).identity.status).toBe("ready")
    })

    it("keeps the audit log with its chain, and the access of apps", async () => {
      // On a busy machine, the store may respond late right after the start, which is a 503.
      await eventually(
        async () => (await mcp(base, access, "tools/list")).status,
        (status) => status === 200,
      )
      const before = verified(log).to!
      const text = await eventually(
        () => exported(base),
        (found) => verified(found).to! > before,
      )
      expect(verified(text).faults).toEqual([])
      for (const line of log.trim().split("\n").slice(1)) expect(text.includes(line), line).toBe(true)
    })
  })

  it("of a backup at rest is identical row by row, except for the adjustments of a restore", async () => {
    const directory = withKey("rested")
    await restored(directory, kept)
    const before = await inStore(source, everything)
    const [after, counts] = await inStore(directory, Effect.all([everything, waiting]))
    const travelled = ["mailbox", "folder", "delivery", "outbox", "backup"]
    const comparable = (all: Record<string, ReadonlyArray<string>>) =>
      Object.fromEntries(Object.entries(all).filter(([table]) => !travelled.includes(table)))
    expect(comparable(after)).toEqual(comparable(before))
    expect(Object.values(before).filter((rows) => rows.length > 0).length).toBeGreaterThan(12)
    expect(after["mailbox"]!.length).toBe(before["mailbox"]!.length)
    expect(after["mailbox"]).not.toEqual(before["mailbox"])

    const { waiting: all, held } = counts
    expect(all).toBeGreaterThan(0)
    expect(held).toBe(all)
    await withSettings(directory, Restore.release())
    const [released, free] = await inStore(directory, Effect.all([everything, waiting]))
    expect(free).toEqual({ waiting: all, held: 0 })
    // The same deliveries as in the backup wait, and no others.
    expect(released["delivery"]).toEqual(before["delivery"])
  })

  it("into a directory that holds a database is refused", async () => {
    const failure = await withSettings(source, Effect.flip(Restore.run(kept, { verify: false, keepSessions: false })))
    expect(failure).toMatchObject({ message: expect.stringMatching(/already contains a database/) })
  })

  it("for verification leaves no files and needs no empty directory", async () => {
    const there = readdirSync(source)
    await restored(source, kept, { verify: true })
    expect(readdirSync(source)).toEqual(there)
  })

  it("without the right key is refused and names the key that it needs", async () => {
    expect(await refusal(place("keyless"), kept)).toMatch(
      /sealed with master key "0", and no key is set: set SVC_MASTER_KEY/,
    )
    const other = Buffer.alloc(32, 9).toString("base64")
    expect(await refusal(place("keyless"), kept, { SVC_MASTER_KEY: `2027:${other}` })).toMatch(
      /sealed with master key "0", but SVC_MASTER_KEY has "2027"/,
    )
    expect(await refusal(place("keyless"), kept, { SVC_MASTER_KEY: other })).toMatch(
      /has a master key "0", but not the one with which this backup is sealed/,
    )
  })

  it("of a truncated, altered or unrelated file is refused", async () => {
    const directory = withKey("torn")
    const complete = readFileSync(kept)
    const file = path.join(root, "torn.tar.zst")
    const flipped = Buffer.from(complete)
    flipped[complete.length >> 1]! ^= 1
    for (const bytes of [
      complete.subarray(0, complete.length - 5),
      complete.subarray(0, complete.length >> 1),
      flipped,
    ]) {
      writeFileSync(file, bytes)
      expect(await refusal(directory, file)).toMatch(/is not (a whole backup|what was written).*Nothing was restored/)
    }
    writeFileSync(file, "something else")
    expect(await refusal(directory, file)).toMatch(/is not a whole backup/)
    expect(await refusal(directory, path.join(root, "nowhere"))).toMatch(/cannot be read: ENOENT/)
  })

  it("is refused for a database other than the embedded one, like the other commands for that", async () => {
    const directory = place("foreign")
    const verify = { verify: true, keepSessions: false }
    for (const command of [
      TakeBackup.run("-", Option.none()),
      Restore.run(kept, verify),
      Restore.release(),
      UpgradeStore.run(Option.none()),
      UpgradeStore.discard(),
    ]) {
      const failure = await withSettings(directory, Effect.flip(command as Effect.Effect<void, unknown>), {
        DATABASE_URL: "postgres://svc@db/svc",
      })
      expect(failure).toMatchObject({ message: expect.stringContaining("pg_dump -Fc") })
    }
    expect(readdirSync(directory)).toEqual([])
  })
})

describe("a backup", () => {
  it("contains no master key, and names the key and its content", async () => {
    const manifest = await Effect.runPromise(inspect(kept))
    expect(manifest.master_keys).toEqual(["0"])
    expect(manifest.tables.find(({ name }) => name === "vault_secret")!.rows).toBe(acknowledged.size)
    expect(manifest.tables.some(({ name }) => name.startsWith("cluster_"))).toBe(false)
    expect(JSON.stringify(manifest)).not.toContain(readFileSync(path.join(source, "master.key"), "utf8").trim())
  })

  it("into a folder keeps the newest backups and touches no other file", async () => {
    const folder = path.dirname(atRest)
    for (const name of ["svc-20250101T000000Z.tar.zst", "svc-20250102T000000Z.tar.zst", "notes.txt"])
      writeFileSync(path.join(folder, name), "")
    await withSettings(source, TakeBackup.run(folder, Option.some(2)))
    const left = readdirSync(folder)
    expect(left).toContain("notes.txt")
    expect(left.filter((name) => name.startsWith("svc-2025"))).toEqual([])
    expect(left.filter((name) => name.startsWith("svc-")).length).toBe(2)
    expect(existsSync(kept)).toBe(true)
    const recorded = Effect.flatMap(
      PgClient.PgClient,
      (sql) => sql<{ n: number }>`select count(*)::int as n from backup`,
    )
    expect((await inStore(source, recorded))[0]!.n).toBe(3)
  })
})

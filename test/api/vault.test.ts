import { Effect, Schedule } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>
let bob: Awaited<ReturnType<typeof makeIdentity>>
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
  bob = await makeIdentity(service.base, session)
})

const put = (name: string, body: unknown, token = session, query = "", headers: Record<string, string> = {}) =>
  call(service.base, "PUT", `/api/vault/secrets/${name}${query}`, { token, body, headers })
const value = (name: string, token = session, query = "") =>
  call(service.base, "GET", `/api/vault/secrets/${name}/value${query}`, { token })

describe("Secret", () => {
  it("is written once by a request that is repeated after a crash, whatever its condition", async () => {
    const crashed = (key: string) =>
      service.query(
        (sql) => sql`
          update idempotency_record set status = null, headers = null, body = null, started_at = now() - interval '1 minute'
          where key = ${key}`,
      )
    const restore = (headers: Record<string, string>) =>
      call(service.base, "POST", "/api/vault/secrets/crash/restore", { token: session, body: { version: 1 }, headers })
    let etag = ""
    for (const [status, version, write] of [
      [
        201,
        1,
        (key: string) => put("crash", { value: "1" }, session, "", { "if-none-match": "*", "idempotency-key": key }),
      ],
      [
        200,
        2,
        (key: string) => put("crash", { value: "2" }, session, "", { "if-match": etag, "idempotency-key": key }),
      ],
      [200, 3, (key: string) => put("crash", { value: "3" }, session, "", { "idempotency-key": key })],
      [200, 4, (key: string) => restore({ "if-match": etag, "idempotency-key": key })],
    ] as const) {
      const key = `crash-${version}`
      const first = await write(key)
      expect([first.status, first.body.version]).toEqual([status, version])
      const now = first.headers.get("etag")!
      await crashed(key)
      const again = await write(key)
      expect([again.status, again.body, again.headers.get("etag")]).toEqual([status, first.body, now])
      etag = now
    }
    expect((await value("crash")).body).toMatchObject({ value: "1", version: 4 })
    await call(service.base, "DELETE", "/api/vault/secrets/crash", { token: session })
  })

  it("is created, replaced, read and removed, and keeps its description if none is given", async () => {
    const made = await put("db.pass", { value: "one", description: "the database" })
    expect(made.status).toBe(201)
    expect(made.body).toMatchObject({ name: "db.pass", size: 3, description: "the database", version: 1 })
    expect(made.body).not.toHaveProperty("value")
    const repeated = await put("db.pass", { value: "zwölf" })
    expect(repeated.status).toBe(200)
    expect(repeated.body).toMatchObject({ size: 6, description: "the database", version: 2 })
    expect((await value("db.pass")).body).toMatchObject({ name: "db.pass", value: "zwölf", version: 2 })
    // A byte order mark is part of the value.
    await put("db.pass", { value: "\ufeffzwölf" })
    expect((await value("db.pass")).body).toMatchObject({ value: "\ufeffzwölf", version: 3 })
    await put("db.pass", { value: "zwölf" })
    const list = await call(service.base, "GET", "/api/vault/secrets", { token: session })
    expect(list.body.secrets).toMatchObject([{ name: "db.pass", size: 6 }])
    expect((await put("db.pass", { value: "zwölf", description: null })).body).toMatchObject({ description: null })
    expect(JSON.stringify(list.body)).not.toContain("zwölf")
    expect((await call(service.base, "DELETE", "/api/vault/secrets/db.pass", { token: session })).status).toBe(204)
    expect((await value("db.pass")).status).toBe(404)
    expect((await call(service.base, "DELETE", "/api/vault/secrets/db.pass", { token: session })).status).toBe(404)
  })

  it("is written only if it is absent with If-None-Match: *, and any other value is refused", async () => {
    const once = (condition: string) => put("once", { value: "x" }, session, "", { "if-none-match": condition })
    for (const condition of ['"1"', "**", ""]) {
      const { status, body } = await once(condition)
      expect([status, body.code, body.detail]).toEqual([
        412,
        "precondition_failed",
        "The only valid If-None-Match of a write is *.",
      ])
    }
    expect((await value("once")).status).toBe(404)
    expect([(await once(" * ")).status, (await once("*")).status]).toEqual([201, 412])
  })

  it("is not shown without an audit record, and is shown again when the log accepts records", async () => {
    await put("audited", { value: "hunter2" })
    let locked = () => {}
    const isLocked = new Promise<void>((resolve) => (locked = resolve))
    const cut = service.query((sql) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`lock table audit in exclusive mode`
          locked()
          // Closes the connection whose statement waits to write the record.
          const close = sql`
            select pg_terminate_backend(a.pid) from pg_stat_activity a
            where pg_backend_pid() = any(pg_blocking_pids(a.pid)) and a.query like '%vault%on_record%'`
          // pg_stat_activity is read once per transaction unless its snapshot is cleared.
          return yield* Effect.repeat(Effect.andThen(sql`select pg_stat_clear_snapshot()`, close), {
            until: (closed) => closed.length > 0,
            schedule: Schedule.spaced("20 millis"),
          })
        }),
      ),
    )
    await isLocked
    const refused = await eventually(
      () => value("audited"),
      ({ body }) => body.code !== "unavailable",
    )
    await cut
    expect([refused.status, refused.body.code]).toEqual([503, "audit_unavailable"])
    expect(JSON.stringify(refused.body)).not.toContain("hunter2")
    expect((await value("audited")).body.value).toBe("hunter2")
  })

  it("is listed in pages whose cursors belong to one namespace", async () => {
    for (const name of ["one", "two"]) {
      const { headers } = await put(`page.${name}`, { value: "x" }, session, `?identity=${ada.handle}`)
      expect(headers.get("location")).toBe(`/api/vault/secrets/page.${name}/value?identity=${ada.handle}`)
    }
    const list = (query: string) => call(service.base, "GET", `/api/vault/secrets?${query}`, { token: session })
    const { body } = await list(`identity=${ada.handle}&limit=1`)
    expect((await list(`identity=${ada.handle}&cursor=${body.next_cursor}`)).body.secrets).toHaveLength(1)
    for (const query of [`identity=${bob.handle}&`, ""]) {
      expect((await list(`${query}cursor=${body.next_cursor}`)).body.code).toBe("invalid_cursor")
    }
  })

  it("keeps its last ten versions, each of which can be restored", async () => {
    for (let i = 1; i <= 12; i++) await put("key", { value: `value ${i}` })
    const { body } = await call(service.base, "GET", "/api/vault/secrets/key/versions", { token: session })
    expect(body.versions.map(({ version }: any) => version)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3])
    expect((await value("key", session, "?version=3")).body).toMatchObject({ value: "value 3", version: 3 })
    expect((await value("key", session, "?version=2")).status).toBe(404)
    const restored = await call(service.base, "POST", "/api/vault/secrets/key/restore", {
      token: session,
      body: { version: 3 },
    })
    expect(restored.body).toMatchObject({ version: 13 })
    expect((await value("key")).body.value).toBe("value 3")
  })

  it("supports conditional writes", async () => {
    const first = await put("cas", { value: "a" }, session, "", { "if-none-match": "*" })
    const tag = first.headers.get("etag")!
    expect(tag).toMatch(/^"v1\./)
    expect((await put("cas", { value: "b" }, session, "", { "if-none-match": "*" })).status).toBe(412)
    expect((await put("cas", { value: "b" }, session, "", { "if-match": tag.replace("v1", "v7") })).body.code).toBe(
      "precondition_failed",
    )
    expect((await put("cas", { value: "b" }, session, "", { "if-match": tag })).status).toBe(200)
    expect((await put("none", { value: "b" }, session, "", { "if-match": "*" })).status).toBe(412)
    const stale = { token: session, headers: { "if-match": tag } }
    const restored = await call(service.base, "POST", "/api/vault/secrets/cas/restore", {
      ...stale,
      body: { version: 1 },
    })
    expect([restored.status, restored.body.code]).toEqual([412, "precondition_failed"])
    expect((await call(service.base, "DELETE", "/api/vault/secrets/cas", stale)).status).toBe(412)
    const race = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        put("cas", { value: `r${i}` }, session, "", { "if-match": tag.replace("v1", "v2") }),
      ),
    )
    expect(race.filter(({ status }) => status === 200)).toHaveLength(1)
    const births = await Promise.all(Array.from({ length: 10 }, (_, i) => put("born", { value: `r${i}` })))
    expect(births.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(Math.max(...births.map(({ body }) => body.version))).toBe(10)
  })

  it("has another entity tag if it is created again after its deletion", async () => {
    const { headers } = await put("again", { value: "old" })
    const tag = headers.get("etag")!
    const removed = await call(service.base, "DELETE", "/api/vault/secrets/again", { token: session })
    expect(removed.status).toBe(204)
    expect((await put("again", { value: "new" })).body.version).toBe(1)
    const cached = { token: session, headers: { "if-none-match": tag } }
    const read = await call(service.base, "GET", "/api/vault/secrets/again/value", cached)
    expect([read.status, read.body.value]).toEqual([200, "new"])
    expect((await put("again", { value: "lost" }, session, "", { "if-match": tag })).status).toBe(412)
  })

  it("is rejected with a specific code for its name or value", async () => {
    expect((await put("Upper", { value: "x" })).body.code).toBe("secret_name_invalid")
    expect((await put(".dot", { value: "x" })).body.code).toBe("secret_name_invalid")
    expect((await put("big", { value: "x".repeat(64 * 1024 + 1) })).body.code).toBe("payload_too_large")
    expect((await put("full", { value: "x".repeat(64 * 1024) })).status).toBe(201)
    const unknown = await put("x", { value: "the secret text", extra: 1 })
    expect(unknown.status).toBe(400)
    expect(JSON.stringify(unknown.body)).not.toContain("the secret text")
  })
})

describe("Namespaces", () => {
  it("are the Org's for an Admin Key, its own for an Identity Key, and an Identity's by name", async () => {
    await put("shared", { value: "org's" })
    await put("shared", { value: "ada's" }, ada.secrets.identity_key)
    await put("shared", { value: "bob's" }, session, `?identity=${bob.handle.toUpperCase()}`)
    expect((await value("shared")).body.value).toBe("org's")
    expect((await value("shared", ada.secrets.identity_key)).body.value).toBe("ada's")
    expect((await value("shared", bob.secrets.identity_key)).body.value).toBe("bob's")
    expect((await value("shared", session, `?identity=${ada.handle}`)).body.value).toBe("ada's")
    const foreign = await value("shared", ada.secrets.identity_key, `?identity=${bob.handle}`)
    expect(foreign.body.code).toBe("foreign_identity")
    expect((await value("shared", session, "?identity=nobody-here")).status).toBe(404)
    const stranger = (await signUp(service.base)).session
    expect((await value("shared", stranger)).status).toBe(404)
    expect((await value("shared", stranger, `?identity=${ada.handle}`)).status).toBe(404)
  })

  it("are encrypted in the store", async () => {
    await put("canary", { value: "a canary that sings" })
    const rows = await service.query((sql) => sql<{ sealed: Uint8Array }>`select sealed from vault_version`)
    for (const { sealed } of rows) expect(Buffer.from(sealed).includes("canary that sings")).toBe(false)
  })
})

/** Each check of the doctor, with the state that it accepts and those that it reports. */
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { tmpdir } from "node:os"
import * as path from "node:path"
import * as Login from "@svc/cli/client/Login"
import { findings, type Options } from "@svc/cli/doctor/Checks"
import * as Discovery from "@svc/cli/doctor/Discovery"
import { type Finding, groups } from "@svc/cli/doctor/Finding"
import { taken } from "@svc/cli/doctor/Listeners"
import { policy } from "@svc/cli/doctor/MailNames"
import * as Store from "@svc/cli/doctor/Store"
import type { Settings } from "@svc/cli/serve/Settings"
import { parseMasterKeys, Sealing } from "@svc/cluster/sealing/Sealing"
import { Writes } from "@svc/cluster/store/Database"
import { layer } from "@effect/vitest"
import { ConfigProvider, Effect, Option, Redacted } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { databaseLayer } from "../harness/Database.ts"
import { freePort } from "../harness/Ports.ts"

const is = (finding: Finding, status: string, detail: RegExp) => {
  expect([finding.status, finding.detail]).toEqual([status, expect.stringMatching(detail)])
  if (status !== "ok") expect(finding.remedy).not.toBe("")
}

layer(databaseLayer, { excludeTestServices: true })("The doctor of the store", (it) => {
  it.effect("wants a backup of the last day in production", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const found = (environment: string) => Store.backup(sql, { environment } as Settings)
      const agedHours = (hours: number) =>
        sql`insert into backup (finished_at, bytes, rows) values (now() - ${hours}::int * interval '1 hour', 1, 1)`
      is(yield* found("production"), "warn", /^no backup$/)
      is(yield* found("development"), "ok", /^no backup$/)
      yield* agedHours(27)
      is(yield* found("production"), "warn", /^the latest backup is from \d{4}-/)
      is(yield* found("development"), "ok", /^the latest backup is from/)
      yield* agedHours(26)
      is(yield* found("production"), "ok", /^\d{4}-/)
    }),
  )

  it.effect("describes the server, and compares the clocks unless the database is embedded", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const found = (isEmbedded: boolean) => Store.server(sql, isEmbedded)
      const late = (seconds: number) => vi.spyOn(Date, "now").mockReturnValue(Date.now() + seconds * 1000)
      const all = yield* found(false)
      expect(all.map(({ name, status }) => `${name} ${status}`)).toEqual([
        "version ok",
        "connections ok",
        // Test servers run without fsync.
        "durability fail",
        "clock ok",
      ])
      is(all[0]!, "ok", /^PostgreSQL 18\.\d+$/)
      is(all[1]!, "ok", /^400, which carry 2\d processes$/)
      expect((yield* found(true)).map(({ name }) => name)).toEqual(["version", "connections", "durability"])
      for (const [seconds, status] of [
        [1.5, "ok"],
        [3, "warn"],
        [-3, "warn"],
      ] as const) {
        const clock = late(seconds)
        const [, , , shown] = yield* found(false)
        clock.mockRestore()
        expect([seconds, shown!.status]).toEqual([seconds, status])
        if (status === "warn") expect(shown!.detail).toMatch(/differs by [23]\.\d s$/)
      }
    }),
  )

  it.effect("compares the migrations in the database with the program", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      is(yield* Store.schema(), "ok", /^up to date$/)
      yield* sql`insert into svc_migrations (migration_id, name) values (7001, 'later')`
      is(yield* Store.schema(), "warn", /migrations of a later version \(.*7001/)
      yield* sql`delete from svc_migrations`
      is(yield* Store.schema(), "ok", /^\d+ migrations are pending/)
    }),
  )

  it.effect("opens the canary with the master key", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const key = (n: number) => Buffer.alloc(32, n).toString("base64")
      const found = (masterKey: string | undefined) =>
        Store.keys(sql, {
          masterKey: masterKey === undefined ? Option.none() : Option.some(Redacted.make(masterKey)),
          dataDirectory: "/nowhere",
        } as Settings)
      is(yield* found(key(1)), "ok", /^nothing is sealed yet$/)
      const canary = yield* Effect.flatMap(Effect.service(Sealing), ({ sealCanary }) => sealCanary).pipe(
        Effect.provide(Sealing.layer(yield* parseMasterKeys(key(1)))),
      )
      yield* sql`insert into sealing_canary (id, sealed) values (1, ${canary})`
      is(yield* found(key(1)), "ok", /^SVC_MASTER_KEY matches the database$/)
      is(yield* found(key(2)), "fail", /^SVC_MASTER_KEY does not match the database$/)
      is(yield* found(undefined), "fail", /^\/nowhere.*does not match the database$/)
    }),
  )
})

describe("The doctor of token verification", () => {
  afterEach(() => vi.unstubAllGlobals())
  const base = "https://id.example"
  const keys = (...algorithms: ReadonlyArray<string>) => ({ keys: algorithms.map((alg) => ({ kid: alg, alg })) })
  const found = (documents: Readonly<Record<string, unknown>>, environment = "production", baseUrl = base) => {
    vi.stubGlobal("fetch", async (request: Request) => {
      const body = documents[new URL(request.url).pathname]
      return body === undefined ? new Response("", { status: 404 }) : Response.json(body)
    })
    return Effect.runPromise(
      Discovery.finding("http://127.0.0.1:1", { baseUrl, environment } as Pick<Settings, "baseUrl" | "environment">),
    )
  }
  const configuration = (issuer = base) => ({
    "/.well-known/openid-configuration": { issuer, jwks_uri: `${issuer}/keys.json` },
  })

  it.each([
    ["no configuration", {}, "fail", /openid-configuration is unreadable$/],
    ["another issuer", { ...configuration("https://other.example") }, "fail", /^the issuer is https:\/\/other.example/],
    ["no keys", configuration(), "fail", /no key for RS256 and ES256$/],
    ["no ES256", { ...configuration(), "/keys.json": keys("RS256") }, "fail", /no key for RS256 and ES256$/],
    ["no RS256", { ...configuration(), "/keys.json": keys("ES256") }, "fail", /no key for RS256 and ES256$/],
    ["both", { ...configuration(), "/keys.json": keys("RS256", "ES256") }, "ok", /publishes RS256, ES256$/],
  ] as const)("reads the documents: %s", async (_, documents, status, detail) =>
    is(await found(documents), status, detail),
  )

  it("wants https in production", async () => {
    const plain = "http://id.example"
    const documents = { ...configuration(plain), "/keys.json": keys("RS256", "ES256") }
    is(await found(documents, "production", plain), "warn", /is not an https address$/)
    is(await found(documents, "development", plain), "ok", /publishes/)
  })
})

describe("The doctor of the policy for TLS of mail", () => {
  afterEach(() => vi.unstubAllGlobals())
  const found = (text: string | undefined, mtaSts = "enforce") => {
    vi.stubGlobal("fetch", async (url: string) => {
      expect(url).toBe("https://mta-sts.mail.example/.well-known/mta-sts.txt")
      return new Response(text ?? "", { status: text === undefined ? 404 : 200 })
    })
    const settings = { mailDomain: "mail.example", mailServers: ["mx1.example", "MX2.example"], mtaSts }
    return Effect.runPromise(policy(settings as unknown as Settings))
  }
  const text = (...servers: ReadonlyArray<string>) =>
    ["version: STSv1", "mode: enforce", ...servers.map((name) => `mx: ${name}`), "max_age: 86400"].join("\r\n")

  it.each([
    ["every server", text("mx1.example", "mx2.example"), "ok", /^https:/],
    ["another spelling", text("MX1.example", "mx2.EXAMPLE"), "ok", /^https:/],
    ["one server", text("mx2.example"), "fail", /does not name mx1\.example$/],
    ["other servers", text("other.example"), "fail", /does not name mx1\.example, MX2\.example$/],
    ["nothing", undefined, "warn", /is not reachable$/],
  ] as const)("compares it with the mail servers: %s", async (_, policy, status, detail) => {
    const [finding, ...more] = await found(policy)
    expect(more).toEqual([])
    is(finding!, status, detail)
  })

  it("reads no policy if the domain has none", async () => expect(await found(undefined, "none")).toEqual([]))
})

describe("The options of the doctor", () => {
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.unstubAllEnvs()
  })
  const env = {
    SVC_DATA_DIR: path.join(tmpdir(), "svc-doctor-makes-nothing"),
    SVC_BASE_URL: "http://127.0.0.1:9",
    SVC_SMTP_TLS_CERT: "/nowhere",
    SVC_SMTP_TLS_KEY: "/nowhere",
  }
  const run = (options: Partial<Options>, more: object = {}) =>
    Effect.runPromise(
      findings({ api: Option.none(), only: new Set(), resolver: undefined, fromOutside: false, ...options }).pipe(
        Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ ...env, ...more }))),
      ),
    )

  it("choose the groups of checks", async () => {
    vi.stubEnv("SVC_KEY", "svc_admin_x")
    vi.stubGlobal("fetch", () => Promise.reject(new Error("no service")))
    for (const group of groups) {
      const found = await run({ only: new Set([group]) })
      expect([group, new Set(found.map((one) => one.group))]).toEqual([group, new Set([group])])
    }
    expect(new Set((await run({})).map(({ group }) => group))).toEqual(new Set(groups))
    const invalid = await run({}, { SVC_HTTP_PORT: "many" })
    expect(new Set(invalid.map(({ group }) => group))).toEqual(new Set(["machine", "settings", "service"]))
    expect(invalid.find(({ name }) => name === "configuration")).toMatchObject({ status: "fail" })
    expect(existsSync(env.SVC_DATA_DIR)).toBe(false)
  })

  it("name the service, whose health and key are checked", async () => {
    const asked: Array<string> = []
    const found = async (health: unknown, who: Response | Error, key = "svc_admin_x") => {
      vi.stubEnv("SVC_KEY", key)
      asked.length = 0
      vi.stubGlobal("fetch", async (request: Request) => {
        asked.push(`${request.url} ${request.headers.get("authorization")}`)
        const answer = /healthz/.test(request.url) ? health : who
        if (answer instanceof Error) throw answer
        return answer instanceof Response ? answer.clone() : Response.json(answer)
      })
      const all = await run({ api: Option.some("http://svc.example"), only: new Set(["service"]) })
      return Object.fromEntries(all.map((one) => [one.name, one]))
    }
    const component = (status: string, detail: string | null) => ({ name: `is ${status}`, status, detail })
    const refusal = () =>
      Response.json(
        { code: "unauthenticated", title: "x", detail: "The key was revoked.", agent_hint: "stop" },
        { status: 401, headers: { "content-type": "application/problem+json" } },
      )
    const well = await found(
      { status: "pass", components: [component("pass", null)] },
      Response.json({ kind: "admin_key" }),
    )
    expect(asked).toContain("http://svc.example/api/healthz null")
    expect(asked).toContain("http://svc.example/api/auth/whoami Bearer svc_admin_x")
    is(well["service"]!, "ok", /^http:\/\/svc\.example$/)
    is(well["login"]!, "ok", /^SVC_KEY$/)
    expect(Object.keys(well)).toContain("token verification")
    const components = [component("pass", null), component("warn", "late"), component("fail", null)]
    const ill = await found({ status: "fail", components }, refusal())
    is(ill["service"]!, "warn", /^http:\/\/svc\.example: is warn \(late\), is fail \(no detail\)$/)
    is(ill["login"]!, "fail", /The key was revoked/)
    expect(Object.keys(ill)).toContain("token verification")
    const down = await found(new Error("refused"), new Error("refused"))
    is(down["service"]!, "warn", /does not report that it is healthy$/)
    is(down["login"]!, "warn", /^not checked/)
    expect(Object.keys(down)).not.toContain("token verification")
  })

  it("send the stored key only to the service that issued it", async () => {
    const home = mkdtempSync(path.join(tmpdir(), "doctor-"))
    vi.stubEnv("SVC_KEY", "")
    vi.stubEnv("XDG_CONFIG_HOME", home)
    const sent: Array<string | null> = []
    vi.stubGlobal("fetch", async (request: Request) => {
      sent.push(request.headers.get("authorization"))
      return Response.json({})
    })
    try {
      await Effect.runPromise(Login.prepare)
      await Effect.runPromise(Login.save({ api: "http://svc.example", key: Redacted.make("svc_admin_stored") }))
      const login = async (api: string) =>
        (await run({ api: Option.some(api), only: new Set(["service"]) })).find(({ name }) => name === "login")!
      is(await login("http://other.example"), "warn", /^not logged in$/)
      expect(sent.filter((key) => key !== null)).toEqual([])
      is(await login("http://svc.example"), "ok", /login\.json$/)
      expect(sent.filter((key) => key !== null)).toEqual(["Bearer svc_admin_stored"])
    } finally {
      rmSync(home, { recursive: true })
    }
  })

  it("check the public ports from another machine", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new Error("no service")))
    const open = createServer()
    await new Promise<void>((resolve) => open.listen(0, "127.0.0.1", resolve))
    const { port } = open.address() as AddressInfo
    const settings = {
      SVC_BASE_URL: `http://127.0.0.1:${port}`,
      SVC_MX: "mx1.localhost,mx2.localhost",
      SVC_TUNNEL_DOMAIN: "t.localhost",
      SVC_EDGE_TCP_PORTS: "30001-30009",
    }
    try {
      const found = await run({ fromOutside: true }, settings)
      expect(found.map(({ name, status, detail }) => `${status} ${name} ${detail}`)).toEqual([
        expect.stringMatching(/^ok names /),
        `ok API 127.0.0.1:${port} answers`,
        "fail mail mx1.localhost:25 is unreachable from here",
        "fail mail mx2.localhost:25 is unreachable from here",
        "fail tunnels connect.t.localhost:443 is unreachable from here",
        "fail a tunnel's port connect.t.localhost:30001 is unreachable from here",
        expect.stringMatching(/^fail token verification .*openid-configuration is unreadable$/),
      ])
      expect(found.filter(({ status }) => status === "fail").map(({ remedy }) => /SVC_\w+/.exec(remedy)?.[0])).toEqual([
        "SVC_MX",
        "SVC_MX",
        "SVC_TUNNEL_DOMAIN",
        "SVC_EDGE_TCP_PORTS",
        undefined,
      ])
      expect((await run({ fromOutside: true }, { SVC_HTTP_PORT: "many" })).map(({ name }) => name)).toEqual([
        "configuration",
      ])
    } finally {
      open.close()
    }
  })
})

describe("The doctor of ports", () => {
  it("reports a port of another program, and the port of operations only if it was set", async () => {
    const names = [
      "httpPort",
      "smtpPort",
      "imapPort",
      "imapsPort",
      "submissionPort",
      "submissionsPort",
      "edgePort",
      "runnerPort",
    ]
    const ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await freePort()] as const)))
    const held = createServer()
    const port = await freePort()
    await new Promise<void>((resolve) => held.listen(port, "127.0.0.1", resolve))
    const all = { host: "127.0.0.1", runnerHost: "127.0.0.1", opsHost: "127.0.0.1", opsPort: Option.none(), ...ports }
    const found = (more: object, running = false) =>
      Effect.runPromise(taken({ ...all, ...more } as unknown as Settings, running))
    try {
      is(await found({}), "ok", /^\d+(, \d+)+$/)
      is(await found({ smtpPort: port }), "fail", new RegExp(`^SVC_SMTP_PORT ${port} in use by another program$`))
      is(await found({ smtpPort: port }, true), "ok", new RegExp(`^SVC_SMTP_PORT ${port}: used by the service$`))
      is(await found({ opsPort: Option.some(port) }), "fail", /^SVC_OPS_PORT \d+ in use/)
    } finally {
      held.close()
    }
  })
})

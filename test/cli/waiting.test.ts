/** Commands that wait, poll, or store something on this machine. */
import { readFileSync, statSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { api, asAdmin, commands, type Json, problem, type Responses } from "../harness/Commands.ts"

const { home, loginFile, run } = commands()

const who = {
  org: { email: "grace@example.org" },
  caller: { kind: "admin_key", key_name: "laptop", key_id: "k7", handle: null },
}
const token = { token: "ey.a.b", expires_at: "2026-11-20T12:05:00.000Z" }
const at = "/api/identities/ada"

describe("svc login", () => {
  const started = {
    device_code: "d",
    user_code: "BBBB-BBBB",
    verification_uri: `${api}/auth/device`,
    verification_uri_complete: `${api}/auth/device?user_code=BBBB-BBBB`,
    expires_at: "2026-11-20T12:00:00.000Z",
    interval_seconds: 5,
  }
  const login = (polls: ReadonlyArray<Json>, ...words: ReadonlyArray<string>) =>
    run(
      ["login", "--api", api, "--name", "desk", ...words],
      { "POST /api/auth/device/token": polls, "POST /api/auth/device": started },
      {},
    )
  const pending = problem(400, "authorization_pending")

  it("polls at the interval of the service, and more slowly on request, if it cannot connect, and if the service is busy", async () => {
    const polls = [
      pending,
      problem(400, "slow_down"),
      problem(400, "slow_down", { retry_after_seconds: 12 }),
      ...[1, 2, 3].map(() => new TypeError("no")),
      problem(503, "unavailable", { agent_hint: "wait" }),
      { key: "svc_key" },
    ]
    const { code, errors, out, requests, times } = await login(polls, "--scope", "mail:read", "--expires", "30d")
    expect(code, errors).toBe(0)
    expect(requests).toEqual([
      'POST /api/auth/device {"name":"desk","client":"svc command line","scopes":["mail:read"],"expires_in_days":30} without key',
      ...polls.map(() => 'POST /api/auth/device/token {"device_code":"d"} without key'),
    ])
    expect(times.slice(1).map((time, n) => time - times[n]!)).toEqual([5, 5, 10, 12, 24, 48, 60, 60])
    expect(out).toContain("http://api.test/auth/device?user_code=BBBB-BBBB\nand approve the code BBBB-BBBB")
    expect(JSON.parse(readFileSync(loginFile, "utf8"))).toEqual({ api, key: "svc_key" })
    expect(statSync(loginFile).mode & 0o777).toBe(0o600)
  })

  it("ends with the reason of a denial, and stores nothing", async () => {
    const { code, errors } = await login([problem(400, "device_code_denied")])
    expect([code, errors]).toEqual([1, "svc: No: Because (device_code_denied, fix_call)\n"])
    expect(() => statSync(loginFile)).toThrow("ENOENT")
  })

  it("is used by later commands for its own service only, and svc logout revokes it", async () => {
    await login([{ key: "stored" }])
    const own = await run(["whoami"], { "GET /": who }, {})
    expect(own.requests).toEqual(["GET /api/auth/whoami Bearer stored"])
    const other = await run(["whoami", "--api", "http://other.test"], { "GET /": who }, {})
    expect([other.code, other.requests]).toEqual([2, []])
    // The environment names another service.
    const named = await run(["whoami"], { "GET /": who }, { SVC_API_URL: "http://other.test" })
    expect([named.code, named.requests]).toEqual([2, []])
    const failed = await run(["logout"], { "GET /": problem(503, "unavailable") }, {})
    expect([failed.code, statSync(loginFile).isFile()]).toEqual([1, true])
    expect(failed.out).toBe("The key stays stored: `svc logout --local` deletes it without revoking it.\n")
    const out = await run(["logout"], { "GET /": who, "DELETE /": 204 }, {})
    expect(out.requests).toEqual(["GET /api/auth/whoami Bearer stored", "DELETE /api/keys/k7 Bearer stored"])
    expect(() => statSync(loginFile)).toThrow("ENOENT")
    const again = await run(["logout", "--json"], {}, {})
    expect([again.requests, again.out]).toEqual([[], '{"was_logged_in":false}\n'])
  })

  it.each(["unauthenticated", "account_deleting", "not_found"])(
    "is deleted if the service answers %s",
    async (code) => {
      await login([{ key: "stored" }])
      expect((await run(["logout"], { "GET /": problem(401, code) }, {})).code).toBe(0)
      expect(() => statSync(loginFile)).toThrow("ENOENT")
    },
  )

  it("is deleted without a request by svc logout --local", async () => {
    await login([{ key: "stored" }])
    const { out, requests } = await run(["logout", "--local", "--json"], {}, {})
    expect([requests, out]).toEqual([[], '{"was_logged_in":true,"revoked":false}\n'])
    expect(() => statSync(loginFile)).toThrow("ENOENT")
  })
})

describe("svc token --write", () => {
  it("replaces the file at the interval, and tries again every ten seconds while the service is busy", async () => {
    const file = path.join(home, "token")
    const busy = problem(503, "unavailable", { agent_hint: "wait" })
    const words = ["token", "--audience", "a", "--handle", "ada", "--write", file, "--every", "4m"]
    const last = problem(403, "scope_missing")
    const { code, errors, times } = await run(
      words,
      { "POST /": [token, busy, new TypeError("no"), { ...token, token: "ey.c.d" }, last] },
      asAdmin,
    )
    expect([code, times]).toEqual([1, [0, 240, 250, 260, 500]])
    expect(errors.split("\n").filter((line) => line !== "")).toHaveLength(4)
    expect(readFileSync(file, "utf8")).toBe("ey.c.d")
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })
})

describe("svc trigger", () => {
  const identity = { handle: "ada", email: "Ada@mail.test" }
  const send =
    /^POST \/api\/identities\/ada\/messages\/send \{"to":\["Ada@mail.test"\],"subject":"Test of email.received [0-9a-f]{8}"/
  const answers = (allowed: ReadonlyArray<string>, found: ReadonlyArray<Json>) => ({
    [`GET ${at}/allowed-recipients`]: { allowed_recipients: allowed.map((address) => ({ address })) },
    [`GET ${at}/messages`]: found.map((messages) => ({ messages })),
    [`GET ${at}`]: identity,
    "POST /": {},
    "DELETE /": 204,
  })
  const message = { id: "msg_1", direction: "inbound" }
  const run_ = (responses: Responses) => run(["trigger", "email.received", "--handle", "ada"], responses, asAdmin)

  it("allows the own address for the message only", async () => {
    const { code, out, requests } = await run_(answers([], [[], [message]]))
    expect([code, out]).toEqual([0, "The message msg_1 arrived: email.sent and email.received were raised.\n"])
    const allowed = `${at}/allowed-recipients`
    expect(requests.map((one) => one.replace(/query=.*/, "query"))).toEqual([
      `GET ${at}`,
      `GET ${allowed}?address=Ada%40mail.test`,
      `POST ${allowed} {"address":"Ada@mail.test"}`,
      expect.stringMatching(send),
      `GET ${at}/messages?direction=inbound&query`,
      `GET ${at}/messages?direction=inbound&query`,
      `DELETE ${allowed}/Ada%40mail.test`,
    ])
  })

  it("keeps an address that was allowed before, and gives up after a minute", async () => {
    const { code, errors, requests, times } = await run_(answers(["ada@MAIL.test"], [[]]))
    expect(code).toBe(2)
    expect(Math.abs(times.at(-1)! - times[2]! - 60)).toBeLessThanOrEqual(1)
    expect(errors).toContain("has not arrived within a minute")
    expect(requests.filter((one) => /^(?:DELETE|POST .*allowed)/.test(one))).toEqual([])
  })
})

describe("svc audit", () => {
  const page = (next_cursor: string | null) => ({ records: [], next_cursor })
  const since = (line: string) => new URL(line.split(" ")[1]!, api).searchParams.get("since")

  it("reads all pages since a duration, a day or a time", async () => {
    const paged = await run(["audit", "--since", "90m"], { "GET /": [page("c"), page(null)] }, asAdmin)
    const first = "GET /api/audit?since=1969-12-31T22%3A30%3A00.000Z&limit=200"
    expect(paged.requests).toEqual([first, `${first}&cursor=c`])
    for (const [given, seen] of [
      ["1d", "1969-12-31T00:00:00.000Z"],
      ["2w", "1969-12-18T00:00:00.000Z"],
      ["30s", "1969-12-31T23:59:30.000Z"],
      ["2h", "1969-12-31T22:00:00.000Z"],
      ["2026-11-22", "2026-11-22T00:00:00.000Z"],
      ["2026-11-22T01:02:03Z", "2026-11-22T01:02:03.000Z"],
    ] as const) {
      const { requests } = await run(["audit", "--since", given], { "GET /": page(null) }, asAdmin)
      expect([given, since(requests[0]!)]).toEqual([given, seen])
    }
    const { code } = await run(["audit", "--since", "yesterday"], {}, asAdmin)
    expect(code).toBe(2)
  })

  const record = {
    id: "aud_0000000000e008000000000001",
    at: "2026-11-22T01:02:03.000Z",
    class: "change",
    action: "cards.patch",
    actor: { kind: "session", id: "s", name: null, client: null },
    identity: "ada",
    target: null,
    outcome: "refused",
    code: "scope_missing",
    scope: null,
    source: { address: null, via: "mcp", tool: "svc_card_update", user_agent: null },
    request_id: null,
    count: 1,
    sealed: null,
  }

  it("shows the reason of a rejection and the tool, and says after 1000 records where the others are", async () => {
    const full = { records: Array.from({ length: 200 }, () => record), next_cursor: "c" }
    const many = await run(["audit"], { "GET /": full }, asAdmin)
    expect([many.code, many.requests.length]).toEqual([0, 5])
    const lines = many.out.trim().split("\n")
    expect(lines).toHaveLength(1_000)
    expect(lines[0]).toMatch(/^2026-11-22T01:02:03\.000Z {2}.*ada.* \(scope_missing\) {2}mcp:svc_card_update, -$/)
    expect(many.errors).toBe("svc: these are the newest 1000 records; GET /api/audit/export returns all\n")
    const all = [...Array<object>(4).fill(full), { ...full, next_cursor: null }]
    expect((await run(["audit"], { "GET /": all }, asAdmin)).errors).toBe("")
    const refused = await run(["audit"], { "GET /": problem(403, "admin_required") }, asAdmin)
    expect([refused.code, refused.errors]).toEqual([1, "svc: No: Because (admin_required, fix_call)\n"])
  })

  it("verify reports an empty export, and reads the master key from a file", async () => {
    const file = path.join(home, "audit.jsonl")
    const keyFile = path.join(home, "master-key")
    writeFileSync(file, '{"head":null,"since":null,"until":null}\n')
    const verify = (...words: ReadonlyArray<string>) => run(["audit", "verify", file, ...words], {}, {})
    expect(await verify()).toMatchObject({ code: 0, out: "The export contains no sealed records.\n" })
    writeFileSync(keyFile, `${Buffer.alloc(32, 7).toString("base64")}\n`)
    expect(await verify("--json", "--master-key-file", keyFile)).toMatchObject({
      code: 0,
      out: '{"sound":true,"records":0,"from":null,"to":null,"faults":[],"head":null}\n',
    })
    writeFileSync(keyFile, "short")
    for (const name of [keyFile, path.join(home, "absent")])
      expect((await verify("--master-key-file", name)).code).toBe(2)
  })
})

describe("svc init", () => {
  const env = path.join(home, "init.env")
  const words = ["init", "--handle", "@ada", "--env", env, "--yes"]
  const ready = { handle: "ada", status: "ready", email: "ada@mail.test" }
  const created = { [`POST ${at}/keys`]: { key: "svc_id" }, "POST /api/identities": {} }

  it("creates the Identity, waits until it is ready, and stores its key", async () => {
    writeFileSync(env, "OTHER=1")
    const { code, errors, requests } = await run(
      words,
      { [`GET ${at}`]: [problem(404, "not_found"), { ...ready, status: "provisioning" }, ready], ...created },
      asAdmin,
    )
    expect(code, errors).toBe(0)
    expect(requests).toEqual([
      `GET ${at}`,
      'POST /api/identities {"handle":"ada"}',
      `GET ${at}`,
      `GET ${at}`,
      `POST ${at}/keys {"name":"svc init ada"}`,
    ])
    expect(readFileSync(env, "utf8")).toBe("OTHER=1\nSVC_API_URL=http://api.test\nSVC_KEY=svc_id\n")
  })

  it("uses an Identity and a key that exist", async () => {
    writeFileSync(env, "export SVC_KEY=mine\n")
    const { out, requests } = await run(words, { [`GET ${at}`]: ready, ...created }, asAdmin)
    expect(requests.filter((one) => !one.startsWith("GET"))).toEqual([])
    expect(out).toContain("Found: ada@mail.test")
    expect(readFileSync(env, "utf8")).toBe("export SVC_KEY=mine\n")
  })

  it("stores no key of an Identity that failed, and reports other problems", async () => {
    writeFileSync(env, "")
    const failed = await run(words, { [`GET ${at}`]: { ...ready, status: "failed" }, ...created }, asAdmin)
    expect([failed.code, failed.errors]).toEqual([2, expect.stringContaining("The Identity ada is failed")])
    const foreign = await run(words, { [`GET ${at}`]: problem(403, "foreign_identity"), ...created }, asAdmin)
    expect([foreign.code, foreign.requests]).toEqual([1, [`GET ${at}`]])
    expect((await run(["init", "--yes"], {}, asAdmin)).code).toBe(2)
    expect((await run([...words, "--client", "nobody"], {}, asAdmin)).code).toBe(2)
    expect(readFileSync(env, "utf8")).toBe("")
  })
})

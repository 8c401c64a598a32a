/** Scopes of keys: each call with each single scope, and the keys that a key can create. */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { endpoints } from "@svc/api/mcp/Tools"
import { page, renewed } from "../../scripts/scopes.ts"
import { type ApiResponse, call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type OwnService } from "../harness/Service.ts"
import { rows } from "./Manifest.ts"

let service: OwnService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>

/** Headers with a client address, which the service accepts from this proxy. */
const from = (address: string) => ({ "x-forwarded-for": address })

beforeAll(async () => {
  service = await startService({ env: { SVC_TRUSTED_PROXIES: "127.0.0.1", SVC_FORWARDED_HEADER: "x-forwarded-for" } })
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
})
afterAll(() => service.stop())

const text = readFileSync(page, "utf8")
/** The documented scope of each operation. */
const promised = new Map(
  [...text.matchAll(/^\| `([a-z]+:[a-z]+)`\s*\| (.*?)\s*\|$/gm)].flatMap(([, scope, calls]) =>
    [...calls!.matchAll(/(?<! of )`([A-Z]+ [^`\s]+)`/g)].map(([, one]) => [one!, scope!] as const),
  ),
)
const scopes = [...new Set(promised.values())]

/** Scope rules, implemented independently of the code under test. */
const order = ["read", "write", "send", "admin"]
const opens = (held: string, needed: string) => {
  const [of, may] = held.split(":") as [string, string]
  const [about, wants] = needed.split(":") as [string, string]
  return of === about && (may === wants || (order.includes(wants) && order.indexOf(may) >= order.indexOf(wants)))
}

const spelled = (method: string, path: string) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`

/**
 * Returns whether a call is tried with a scope: each call is tried with all scopes of its resource and with two others. The two
 * others differ between calls, so that each scope is tried with calls of many resources.
 */
const isTried = (needed: string, scope: string, call: number) =>
  scope.split(":")[0] === needed.split(":")[0] || (scopes.indexOf(scope) + call) % (scopes.length >> 1) === 0

/** Returns a path to existing resources and a request that has no effect if it is accepted. */
const at = (path: string) =>
  path
    .replace(":handle", ada.handle)
    .replace(":platform", "mastodon")
    .replace(":userCode", "BBBBBBBB")
    .replace(/:(id|delivery_id|index|address|name)/g, "zzz")

const newKey = async (body: object, token = session, path = "/api/keys") =>
  call(service.base, "POST", path, { token, body: { name: "one", ...body } })
const keyWith = async (...names: ReadonlyArray<string>): Promise<string> => (await newKey({ scopes: names })).body.key

const mcp = (token: string, method: string, params: object = {}, headers: Record<string, string> = {}, query = "") =>
  call(service.base, "POST", `/api/mcp${query}`, {
    token,
    headers: { accept: "application/json, text/event-stream", ...headers },
    body: { jsonrpc: "2.0", id: 1, method, params },
  })

describe("Table of scopes", () => {
  it("matches the calls (`node scripts/scopes.ts` writes it)", () => {
    const plain = (one: string) => one.replace(/[ -]+/g, " ")
    expect(plain(text)).toBe(plain(renewed(text)))
    expect(scopes.length).toBeGreaterThan(20)
    const unscoped = rows.filter(
      ({ scope, endpoint }) => scope !== "public" && !promised.has(spelled(endpoint.method, endpoint.path)),
    )
    expect(unscoped.map(({ id }) => id)).toEqual(["session.whoami", "proof.verify"])
  })
})

describe("Key with one scope", () => {
  it("is accepted over REST for the calls of that scope only", async () => {
    const wrong: Array<string> = []
    for (const scope of scopes) {
      const token = await keyWith(scope)
      await Promise.all(
        rows.map(async ({ id, scope: access, endpoint }, index) => {
          const { method, path } = endpoint
          const needed = promised.get(spelled(method, path))
          if (needed === undefined || !isTried(needed, scope, index) || access === "session" || id === "events.replay")
            return
          // The stream would not end; a started stream is sufficient.
          if (id.startsWith("events.stream") && opens(scope, needed)) return
          const answer = await call(service.base, method, `${at(path)}?unknown=1`, {
            token,
            headers: { "if-match": `"never"` },
            ...(method === "GET" ? {} : { body: "{" }),
          })
          const expected = opens(scope, needed) ? answer.body.code !== "scope_missing" : isMissing(answer, needed)
          if (!expected) wrong.push(`${scope} at ${id}: ${answer.status} ${answer.body.code}`)
        }),
      )
    }
    expect(wrong).toEqual([])
  })

  const isMissing = ({ status, headers, body }: ApiResponse, needed: string) =>
    status === 403 &&
    body.code === "scope_missing" &&
    body.scopes.join() === needed &&
    body.widen_url.startsWith(`${service.base}/console/keys/`) &&
    headers.get("www-authenticate") === `Bearer error="insufficient_scope", scope="${needed}"`

  const isOpen = (scope: string, needed: string | undefined) => needed === undefined || opens(scope, needed)

  it("is accepted over MCP for the same calls, and lists no other tool", async () => {
    for (const scope of scopes) {
      const token = await keyWith(scope)
      // The compact list leaves out a tool that another one covers.
      const { body } = await mcp(token, "tools/list", {}, {}, "?schemas=full")
      const listed = body.result.tools.map(({ name }: { name: string }) => name)
      const may = endpoints.filter(({ method, path }) => isOpen(scope, promised.get(spelled(method, path))))
      expect(listed.toSorted(), scope).toEqual([...new Set(may.map((one) => one.listed.name))].toSorted())
      await Promise.all(
        endpoints.map(async ({ listed: tool, method, path, inPath, choice }, index) => {
          const needed = promised.get(spelled(method, path))
          if (isOpen(scope, needed) || !isTried(needed!, scope, index)) return
          const input = Object.fromEntries(inPath.map((name) => [name, name === "handle" ? ada.handle : "zzz"]))
          if (choice !== undefined) input[choice.argument] = choice.value
          const { status, body } = await mcp(token, "tools/call", { name: tool.name, arguments: input })
          const got = [status, body.result.isError, body.result.structuredContent.code]
          expect(got, `${scope} at ${tool.name}`).toEqual([200, true, "scope_missing"])
        }),
      )
    }
  })

  it("finds its scopes in whoami and in the MCP instructions", async () => {
    const token = await keyWith("card:write", "mail:read")
    const who = await call(service.base, "GET", "/api/auth/whoami", { token })
    expect(who.body.caller).toMatchObject({ scopes: ["mail:read", "card:write"], handles: null, networks: null })
    const opened = await mcp(token, "initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    })
    expect(opened.body.result.instructions).toContain("mail:read, card:write")
  })

  it("is checked again before a stored response is repeated", async () => {
    const token = await keyWith("mail:write")
    const draft = () =>
      call(service.base, "POST", `/api/identities/${ada.handle}/drafts`, {
        token,
        headers: { "idempotency-key": "same" },
        body: { to: [], text: "x" },
      })
    const first = await draft()
    expect((await draft()).headers.get("idempotent-replayed")).toBe("true")
    await service.query(
      (sql) => sql`update api_key set scopes = 'mail:read' where name = 'one' and scopes = 'mail:write'`,
    )
    expect([first.status, (await draft()).body.code]).toEqual([201, "scope_missing"])
  })
})

describe("Key created by a key", () => {
  const wider: ReadonlyArray<readonly [string, object, object]> = [
    ["more scopes", { scopes: ["account:admin"] }, { scopes: ["mail:read"] }],
    ["everything", { scopes: ["account:admin", "mail:read"] }, { scopes: ["*"] }],
    ["a secret", { scopes: ["account:admin", "vault:write"] }, { scopes: ["vault:secret"] }],
    ["a later end", { expires_in_days: 30 }, { expires_in_days: 31 }],
    ["another network", { networks: ["127.0.0.0/8"] }, { networks: ["127.0.0.0/7"] }],
    ["the other family", { networks: ["127.0.0.0/8", "2001:db8::/64"] }, { networks: ["2001:db8::/63"] }],
  ]
  it.each(wider)("cannot have %s", async (_, own, wanted) => {
    const { key } = (await newKey(own)).body
    for (const path of ["/api/keys", `/api/identities/${ada.handle}/keys`]) {
      const { status, body } = await newKey(wanted, key, path)
      expect([status, body.code], path).toEqual([403, "scope_exceeds"])
      // Omitted members default to the values of the creator.
      const alike = await newKey({}, key, path)
      const maker = (await newKey(own)).body.api_key
      expect(alike.body.api_key).toMatchObject({ scopes: maker.scopes, networks: maker.networks })
      if ("expires_in_days" in own) {
        const days = (new Date(alike.body.api_key.expires_at).getTime() - Date.now()) / 86_400_000
        expect(Math.round(days)).toBe(30)
      }
    }
  })

  it("cannot be rotated or approved beyond the caller's scopes", async () => {
    const { key } = (await newKey({ scopes: ["account:admin"] })).body
    const full = (await newKey({})).body.api_key
    const rotated = await call(service.base, "POST", `/api/keys/${full.id}/rotate`, { token: key })
    expect([rotated.status, rotated.body.code]).toEqual([403, "scope_exceeds"])
    const start = async (body: object) =>
      (await call(service.base, "POST", "/api/auth/device", { body: { name: "laptop", ...body } })).body
    const device = await start({ scopes: ["mail:read"], expires_in_days: 30 })
    const approve = (code: string, token: string, body?: object) =>
      call(service.base, "POST", `/api/auth/device/${code}/approve`, { token, body })
    expect((await approve(device.user_code, key)).body.code).toBe("scope_exceeds")
    expect((await approve(device.user_code, session, { scopes: ["mail:send"] })).body.code).toBe("scope_exceeds")
    expect((await approve(device.user_code, session, { expires_in_days: 31 })).body.code).toBe("scope_exceeds")
    expect((await approve(device.user_code, session, { expires_in_days: 7 })).status).toBe(204)
    const made = await call(service.base, "POST", "/api/auth/device/token", {
      body: { device_code: device.device_code },
    })
    expect(made.body.api_key).toMatchObject({ scopes: ["mail:read"] })
    const days = (new Date(made.body.api_key.expires_at).getTime() - Date.now()) / 86_400_000
    expect(Math.round(days)).toBe(7)
    // A device that requests full access gets the scopes of the approver.
    const plain = await start({})
    expect((await approve(plain.user_code, key)).status).toBe(204)
    const narrow = await call(service.base, "POST", "/api/auth/device/token", {
      body: { device_code: plain.device_code },
    })
    expect(narrow.body.api_key).toMatchObject({ scopes: ["account:admin"], expires_at: null })
  })

  it("must name existing scopes and valid networks", async () => {
    for (const [body, code] of [
      [{ scopes: ["mail:fly"] }, "scope_unknown"],
      [{ scopes: ["card:admin"] }, "scope_unknown"],
      [{ scopes: [] }, "invalid_request"],
      [{ networks: ["10.1"] }, "invalid_request"],
      [{ networks: ["10.0.0.0/33"] }, "invalid_request"],
      [{ expires_in_days: 366 }, "invalid_request"],
      [{ expires_in_days: 3, expires_at: "2099-01-01T00:00:00Z" }, "invalid_request"],
      [{ expires_at: "2020-01-01T00:00:00Z" }, "invalid_request"],
    ] as const) {
      expect((await newKey(body)).body.code, JSON.stringify(body)).toBe(code)
    }
  })
})

describe("Additional Identity Key", () => {
  it("acts on its Identity within its scopes", async () => {
    const bob = await makeIdentity(service.base, session)
    const path = `/api/identities/${bob.handle}/keys`
    expect((await newKey({}, bob.secrets.identity_key, path)).body.code).toBe("admin_required")
    const made = await newKey({ scopes: ["identity:read"] }, session, path)
    expect(made.body).toMatchObject({
      key: expect.stringMatching(/^svc_id_/),
      api_key: { scope: "identity", identity_id: bob.identity.id, scopes: ["identity:read"] },
    })
    const token = made.body.key
    const own = await call(service.base, "GET", `/api/identities/${bob.handle}`, { token })
    const list = await call(service.base, "GET", "/api/identities", { token })
    const mail = await call(service.base, "GET", `/api/identities/${bob.handle}/messages`, { token })
    const value = await call(service.base, "GET", "/api/vault/secrets/x/value", { token })
    expect([own.status, list.body.code, mail.body.code, value.body.code]).toEqual([
      200,
      "org_scope_required",
      "scope_missing",
      "scope_missing",
    ])
  })
})

describe("Networks of a key", () => {
  it("apply to REST and tools, by the client's full address", async () => {
    const { key } = (await newKey({ networks: ["203.0.113.0/24", "2001:db8:1::/64"] })).body
    const outcome = async (address: string) => {
      const rest = await call(service.base, "GET", "/api/identities", { token: key, headers: from(address) })
      const tool = await mcp(key, "tools/call", { name: "svc_identity_list", arguments: {} }, from(address))
      const list = await mcp(key, "tools/list", {}, from(address))
      return [rest.status, rest.body.code, tool.body.result?.structuredContent.code, list.status]
    }
    expect(await outcome("203.0.113.9")).toEqual([200, undefined, undefined, 200])
    expect(await outcome("2001:db8:1::9")).toEqual([200, undefined, undefined, 200])
    expect(await outcome("203.0.114.9")).toEqual([403, "network_refused", "network_refused", 403])
    // A forwarded address that the client sent is ignored; only the address that the proxy added counts.
    expect(await outcome("203.0.113.9, 198.51.100.7")).toEqual([403, "network_refused", "network_refused", 403])
    const keys = await call(service.base, "GET", "/api/keys", { token: session })
    const [bound] = keys.body.api_keys.filter((one: any) => one.networks !== null && one.networks.length === 2)
    expect(bound).toMatchObject({ networks: ["203.0.113.0/24", "2001:db8:1::/64"], last_used_address: "203.0.113.9" })
  })
})

describe("Rotated key", () => {
  it("works beside its successor until the overlap ends, and is replaced once", async () => {
    const { api_key: former, key } = (await newKey({ scopes: ["card:read"], networks: ["127.0.0.1"] })).body
    const rotate = (body?: object) =>
      call(service.base, "POST", `/api/keys/${former.id}/rotate`, { token: session, body })
    const made = await rotate({ overlap_seconds: 3600 })
    expect(made.status).toBe(201)
    expect(made.body.api_key).toMatchObject({
      name: "one",
      scopes: ["card:read"],
      networks: ["127.0.0.1"],
      expires_at: null,
    })
    const read = (token: string) => call(service.base, "GET", `/api/identities/${ada.handle}/card`, { token })
    expect([(await read(key)).status, (await read(made.body.key)).status]).toEqual([200, 200])
    const seen = await call(service.base, "GET", `/api/keys/${former.id}`, { token: session })
    const minutes = (new Date(seen.body.expires_at).getTime() - Date.now()) / 60_000
    expect([seen.body.replaced_by, Math.round(minutes)]).toEqual([made.body.api_key.id, 60])
    expect((await rotate()).body.code).toBe("key_replaced")
    const next = await call(service.base, "POST", `/api/keys/${made.body.api_key.id}/rotate`, {
      token: session,
      body: { overlap_seconds: 0 },
    })
    expect([next.status, (await read(made.body.key)).body.code]).toEqual([201, "key_expired"])
    const events = await call(service.base, "GET", "/api/events?type=api_key.rotated", { token: session })
    expect(events.body.events.map(({ data }: any) => [data.key_id, data.replaced_by])).toEqual([
      [made.body.api_key.id, next.body.api_key.id],
      [former.id, made.body.api_key.id],
    ])
    // Without a wish the overlap is a day.
    const last = next.body.api_key.id
    await call(service.base, "POST", `/api/keys/${last}/rotate`, { token: session })
    const { body } = await call(service.base, "GET", `/api/keys/${last}`, { token: session })
    expect(Math.round((new Date(body.expires_at).getTime() - Date.now()) / 3_600_000)).toBe(24)
  })

  it("is not created for an Identity that is not ready", async () => {
    const { handle } = await makeIdentity(service.base, session)
    await service.query((sql) => sql`update identity set status = 'provisioning' where handle = ${handle}`)
    const refused = await newKey({}, session, `/api/identities/${handle}/keys`)
    expect([refused.status, refused.body.code]).toEqual([409, "identity_not_ready"])
  })

  it("ends its open stream when it expires", async () => {
    const { api_key, key } = (await newKey({})).body
    const stream = await fetch(`${service.base}/api/events/stream`, { headers: { authorization: `Bearer ${key}` } })
    const reader = stream.body!.getReader()
    await reader.read()
    await call(service.base, "POST", `/api/keys/${api_key.id}/rotate`, { token: session, body: { overlap_seconds: 0 } })
    while (!(await reader.read()).done);
  })
})

describe("Keys of an account", () => {
  it("are limited to 200 active ones", async () => {
    const { session: token, org } = await signUp(service.base)
    await service.query(
      (sql) => sql`insert into api_key (id, org_id, name, token_prefix, token_hash, created_at, expires_at)
        select uuidv7(), ${org.id}, 'n', 'svc_admin_', decode(md5(n::text || ${org.id}), 'hex'), now(),
               case when n > 200 then now() - interval '1 hour' end
        from generate_series(1, 210) n`,
    )
    expect((await newKey({}, token)).body.code).toBe("key_quota_exhausted")
    await service.query(
      (sql) => sql`update api_key set revoked_at = now() where org_id = ${org.id}
      and id = (select id from api_key where org_id = ${org.id} and expires_at is null limit 1)`,
    )
    expect((await newKey({}, token)).status).toBe(201)
  })
})

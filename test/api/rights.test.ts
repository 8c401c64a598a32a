/**
 * Rights belong to scopes, not to the kind of a credential: which members of a change are reserved for `admin`, what a
 * credential may get that is wider than itself, and what a Webhook may carry.
 */
import { document } from "@svc/api/openapi/Document"
import { fallsShort, judgeRights, type KeyRights } from "@svc/domain/account/KeyRights"
import { isWithin, networksOf } from "@svc/domain/account/Networks"
import { allows, scopesOf } from "@svc/domain/account/Scope"
import { Reveals } from "@svc/domain/account/ScopeOf"
import { ShowsSecret } from "@svc/domain/account/Policy"
import { identityEventTypes, lacksToReceive } from "@svc/domain/events/Event"
import { endpoints, isScope, scopeNames } from "@svc/domain/ScopeTable"
import { Context, Result } from "effect"
import * as fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let handle: string
let secrets: Record<string, any>
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
  ;({ handle, secrets } = await makeIdentity(service.base, session))
})
afterAll(() => service.stop())

const keyOf = async (rights: object, path = "/api/keys"): Promise<string> =>
  (await call(service.base, "POST", path, { token: session, body: { name: "k", ...rights } })).body.key
const at = (path: string) => `/api/identities/${handle}${path}`

/** Loosens nothing that a person controls. */
const free = undefined

/**
 * Every member of every PATCH with a value that loosens the control of a person, or `free`. A new member fails the first
 * test below until it is placed here.
 */
const members: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "/api/account": { language: free },
  "/api/account/mail": { outgoing: free, reason: free },
  "/api/grants/{id}": { scopes: free, handles: free, networks: free, expires_at: free },
  "/api/identities/{handle}/card": {
    name: free,
    description: free,
    version: free,
    documentation_url: free,
    icon_url: free,
    provider: free,
    capabilities: free,
    default_input_modes: free,
    default_output_modes: free,
    interfaces: free,
    skills: free,
  },
  "/api/identities/{handle}/connectors": { paused: false },
  "/api/identities/{handle}/connectors/{platform}": { paused: false },
  "/api/identities/{handle}/mail": { outgoing: "active", reason: free, approval: "none", tag_folders: free },
  "/api/identities/{handle}/messages/{id}": { seen: free, flagged: free, labels: free },
  "/api/identities/{handle}/tunnel": {
    host_header: free,
    // The edge refuses to pass TLS through while a password is set.
    tls: free,
    allowed_networks: [],
    basic_auth: null,
    proxy_protocol: free,
  },
  // What the change would make the Webhook carry is judged by the scopes of the caller, below.
  "/api/identities/{handle}/webhooks/{id}": { url: free, event_types: free, description: free, status: free },
}

const patches = Object.entries<Record<string, any>>(document["paths"]).filter(([, methods]) => methods["patch"])
const membersOf = (methods: Record<string, any>): ReadonlyArray<string> => {
  const { schema } = methods["patch"].requestBody.content["application/json"]
  const resolved = schema.$ref === undefined ? schema : document["components"].schemas[schema.$ref.split("/").pop()]
  return Object.keys(resolved.properties)
}

describe("members of a change", () => {
  it("are all placed: reserved for the admin scope, or free", () => {
    const described = patches.map(([path, methods]) => [path, [...membersOf(methods)].sort()])
    const placed = Object.entries(members).map(([path, of]) => [path, Object.keys(of).sort()])
    expect(Object.fromEntries(described)).toEqual(Object.fromEntries(placed))
  })

  const reserved = Object.entries(members).flatMap(([path, of]) =>
    Object.entries(of).flatMap(([member, value]) => (value === free ? [] : [[path, member, value] as const])),
  )

  it.each(reserved)("that loosen human control need the admin scope: %s %s", async (path, member, value) => {
    const capability = /mail|tunnel|connector/.exec(path)![0]
    const set = async (token: string) =>
      call(service.base, "PATCH", path.replace("{handle}", handle).replace("{platform}", "mastodon"), {
        token,
        body: { [member]: value },
      })
    const narrow = await set(await keyOf({ scopes: [`${capability}:write`] }))
    expect(narrow.status).toBe(403)
    expect(narrow.body).toMatchObject({ code: "scope_missing", scopes: [`${capability}:admin`] })
    expect(narrow.body.detail).toContain(member)
    for (const scopes of [undefined, [`${capability}:write`]]) {
      const own = await set(await keyOf(scopes === undefined ? {} : { scopes }, at("/keys")))
      expect([own.status, own.body.code]).toEqual([403, "admin_required"])
      expect(own.body.errors[0].path).toBe(`/${member}`)
    }
    for (const token of [session, await keyOf({ scopes: [`${capability}:admin`] })])
      expect((await set(token)).status).not.toBe(403)
  })

  it("that tighten it need the write scope only", async () => {
    const token = await keyOf({ scopes: ["mail:write", "connector:write"] }, at("/keys"))
    const set = (path: string, body: object) => call(service.base, "PATCH", at(path), { token, body })
    expect((await set("/mail", { outgoing: "stopped", reason: "test" })).status).toBe(200)
    expect((await set("/connectors", { paused: true })).status).toBe(200)
    const restored = { token: session, body: { outgoing: "active" } }
    expect((await call(service.base, "PATCH", at("/mail"), restored)).status).toBe(200)
    await call(service.base, "PATCH", at("/connectors"), { token: session, body: { paused: false } })
  })
})

describe("approval of outgoing mail", () => {
  it("is needed for a key that may send and not approve, and not for one that may approve", async () => {
    const address = "someone@example.org"
    await call(service.base, "POST", at("/allowed-recipients"), { token: session, body: { address } })
    const set = (approval: string) => call(service.base, "PATCH", at("/mail"), { token: session, body: { approval } })
    await set("required")
    const send = async (token: string) =>
      (await call(service.base, "POST", at("/messages/send"), { token, body: { to: [address], text: "hello" } })).body
        .status
    expect(await send(await keyOf({ scopes: ["mail:send"] }))).toBe("awaiting_approval")
    expect(await send(secrets["identity_key"])).toBe("awaiting_approval")
    expect(await send(await keyOf({ scopes: ["mail:admin"] }))).toBe("queued")
    expect(await send(session)).toBe("queued")
    await set("none")
  })
})

describe("what a credential can get", () => {
  /** Operations whose response shows or replaces a secret, and the rule that keeps it from exceeding the caller. */
  const rules: Readonly<Record<string, string>> = {
    "api_keys.create": "the rights of the key are judged",
    "api_keys.createForIdentity": "the rights of the key are judged",
    "api_keys.rotate": "the rights of the key are judged",
    "devices.poll": "public: what was approved is bound to the approver's rights",
    "exports.archive": "account:secret; values of the Vault for a session only",
    "identities.secrets": "full rights",
    "identities.rotate": "full rights",
    "sessions.verify": "public: the magic link",
    "vault.value": "vault:secret",
    "webhooks.create": "signs deliveries, is no credential of the API",
    "webhooks.rotate": "signs deliveries, is no credential of the API",
  }

  it("is listed here for every operation that shows a secret", () => {
    const showing = endpoints
      .filter(
        ({ endpoint }) => Context.get(endpoint.annotations, ShowsSecret) || Context.get(endpoint.annotations, Reveals),
      )
      .map(({ id }) => id)
    expect(showing.filter((id) => rules[id] === undefined)).toEqual([])
  })

  const names = fc.subarray(["*", ...scopeNames], { minLength: 1 })
  const rights = fc.record({
    scopes: fc.oneof(
      fc.constant(scopesOf("*")),
      names.map((some) => scopesOf(some.join(" "))),
    ),
    expiresAt: fc.option(fc.integer({ min: 1, max: 400 }).map((days) => new Date(days * 86_400_000))),
    networks: fc.option(
      fc
        .subarray(["192.0.2.0/24", "192.0.2.7", "198.51.100.0/25", "2001:db8::/32", "0.0.0.0/0"], { minLength: 1 })
        .map((some) => networksOf(some.join(" "))),
    ),
  })
  /** Written apart from the code that judges: by trying every scope, every day and some addresses. */
  const isWider = (one: KeyRights, than: KeyRights) =>
    ["*", ...scopeNames].some(
      (name) =>
        allows(one.scopes, name as (typeof scopeNames)[number]) &&
        !allows(than.scopes, name as (typeof scopeNames)[number]),
    ) ||
    (than.expiresAt !== null && (one.expiresAt === null || one.expiresAt > than.expiresAt)) ||
    ["192.0.2.7", "192.0.2.8", "198.51.100.1", "198.51.100.200", "2001:db8::1", "203.0.113.9"].some(
      (address) =>
        (one.networks === null || isWithin(one.networks, address)) &&
        than.networks !== null &&
        !isWithin(than.networks, address),
    )

  it("is never a key that is wider than its maker, whatever either has", () => {
    fc.assert(
      fc.property(rights, rights, (maker, asked) => {
        const made = judgeRights(
          maker,
          {
            scopes: asked.scopes.names,
            ...(asked.expiresAt === null ? {} : { expires_at: asked.expiresAt }),
          },
          isScope,
          0,
        )
        if (Result.isSuccess(made)) expect(isWider(made.success, maker)).toBe(false)
        else
          expect(
            isWider({ ...asked, expiresAt: asked.expiresAt ?? maker.expiresAt, networks: maker.networks }, maker),
          ).toBe(true)
        const full = maker.scopes.all && maker.expiresAt === null && maker.networks === null
        expect(fallsShort(maker) === undefined).toBe(full)
      }),
      { numRuns: 3_000 },
    )
  })

  it.each([
    ["scopes", { scopes: ["identity:admin", "identity:secret"] }],
    ["time", { expires_in_days: 1 }],
    ["networks", { networks: ["127.0.0.0/8"] }],
  ])("is not the Identity Key where its own %s are limited", async (_, limits) => {
    const token = await keyOf(limits)
    const read = await call(service.base, "GET", at("/identity-key"), { token })
    const rotated = await call(service.base, "POST", at("/identity-key/rotate"), { token })
    for (const { status, body } of [read, rotated]) expect([status, body.code]).toEqual([403, "scope_exceeds"])
    // Nothing was replaced.
    expect((await call(service.base, "GET", "/api/auth/whoami", { token: secrets["identity_key"] })).status).toBe(200)
  })
})

describe("a Webhook", () => {
  const path = () => at("/webhooks")
  const url = "https://example.org/hook"
  const make = async (token: string, event_types: ReadonlyArray<string>) =>
    call(service.base, "POST", path(), { token, body: { url, event_types } })

  it("carries no more than its maker may read", async () => {
    const blind = await keyOf({ scopes: ["webhook:write"] }, at("/keys"))
    for (const types of [["*"], ["email.received"], ["webhook.failed", "tunnel.connected"]]) {
      const { status, body } = await make(blind, types)
      expect([status, body.code]).toEqual([403, "scope_missing"])
    }
    expect((await make(blind, ["email.received"])).body.scopes).toEqual(["mail:read"])
    expect((await make(blind, ["webhook.failed"])).status).toBe(201)
    const reader = await keyOf({ scopes: ["webhook:write", "mail:read"] }, at("/keys"))
    expect((await make(reader, ["email.received"])).status).toBe(201)
    expect((await make(reader, ["*"])).status).toBe(403)
    const all = await keyOf({ scopes: ["webhook:write", "event:read"] }, at("/keys"))
    expect((await make(all, ["*"])).status).toBe(201)
  })

  it("of somebody else is not led elsewhere, started again or read by who may not read what it carries", async () => {
    const blind = await keyOf({ scopes: ["webhook:write"] }, at("/keys"))
    const { id } = (await make(session, ["*"])).body
    const change = async (body: object) =>
      (await call(service.base, "PATCH", `${path()}/${id}`, { token: blind, body })).body.code
    expect(await change({ url: "https://elsewhere.example/hook" })).toBe("scope_missing")
    expect(await change({ status: "active" })).toBe("scope_missing")
    expect(await change({ event_types: ["*"] })).toBe("scope_missing")
    expect(await change({ status: "disabled" })).toBeUndefined()
    const request = `${path()}/${id}/deliveries/dlv_01kjr8xr3v7k2t9m4q6w8y0zab/request`
    expect((await call(service.base, "GET", request, { token: blind })).body.code).toBe("scope_missing")
  })

  it("needs the read scope of each type it subscribes to, for every type there is", () => {
    for (const type of identityEventTypes) {
      const [needed, ...others] = lacksToReceive(scopesOf("webhook:read"), [type])
      if (needed === undefined) expect(type).toMatch(/^webhook\./)
      else expect(lacksToReceive(scopesOf(needed), [type])).toEqual([])
      expect(others).toEqual([])
    }
  })
})

/** Which members of a change require `admin`, which credentials a caller can obtain, and which Events a Webhook may receive. */
import { document } from "@svc/api/openapi/Document"
import { fallsShort, judgeRights, type KeyRights } from "@svc/domain/account/KeyRights"
import { isWithin, networksOf } from "@svc/domain/account/Networks"
import { allows, scopesOf } from "@svc/domain/account/Scope"
import { reservedScopeOf, Reveals } from "@svc/domain/account/EndpointScope"
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { judgeBody, looksAtBody } from "@svc/domain/account/PolicyEvaluation"
import { policyOf, ShowsSecret } from "@svc/domain/account/Policy"
import { endpoints, isScope, scopeNames } from "@svc/domain/ScopeTable"
import { Context, Result } from "effect"
import * as fc from "fast-check"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let handle: string
let secrets: Record<string, any>
let webhookId: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ;({ handle, secrets } = await makeIdentity(service.base, session))
  const hook = { url: "https://example.org/hook", event_types: ["webhook.failed"] }
  webhookId = (await call(service.base, "POST", at("/webhooks"), { token: session, body: hook })).body.id
})

/** Rights are checked before the resource is read, so these resources need not exist. */
const grantId = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10"
const messageId = "msg_01kjr8xr3v7k2t9m4q6w8y0zab"

const keys = new Map<string, Promise<string>>()
/** Returns a key with these rights, which its users do not change. */
const keyOf = (rights: object, path = "/api/keys") => {
  const create = async (): Promise<string> =>
    (await call(service.base, "POST", path, { token: session, body: { name: "k", ...rights } })).body.key
  const wanted = JSON.stringify([rights, path])
  if (!keys.has(wanted)) keys.set(wanted, create())
  return keys.get(wanted)!
}
const at = (path: string) => `/api/identities/${handle}${path}`

/** A value that weakens no protection of the account holder, so that the scope of the operation suffices. */
const free = (value: unknown) => ({ value, loosens: false })
const allFree = (names: string) => Object.fromEntries(names.split(" ").map((name) => [name, free([])]))
/** A value that weakens a protection of the account holder. */
const loosens = (value: unknown) => ({ value, loosens: true })

/** Every member of every PATCH. The first test below fails for a new member until it is listed here. */
const members: Readonly<Record<string, Readonly<Record<string, ReturnType<typeof free>>>>> = {
  "/api/account": { language: free("en"), api_version: free("2026-11-25") },
  "/api/account/mail": { outgoing: free("stopped"), reason: free("test") },
  "/api/grants/{id}": {
    scopes: free(["mail:read"]),
    handles: free(null),
    networks: free(null),
    expires_at: free("2027-01-01T00:00:00Z"),
  },
  "/api/identities/{handle}/card": {
    name: free("Ada"),
    description: free("Adds."),
    version: free("1.0.1"),
    documentation_url: free(null),
    icon_url: free(null),
    provider: free(null),
    capabilities: free({}),
    default_input_modes: free(["text/plain"]),
    default_output_modes: free(["text/plain"]),
    interfaces: free(null),
    skills: free([]),
  },
  "/api/identities/{handle}/connectors": { paused: loosens(false) },
  "/api/identities/{handle}/connectors/{platform}": { paused: loosens(false) },
  "/api/identities/{handle}/mail": {
    outgoing: loosens("active"),
    reason: free("test"),
    approval: loosens("none"),
    tag_folders: free(false),
  },
  "/api/identities/{handle}/proof": { audiences: free("any"), sites: free("any") },
  "/api/identities/{handle}/messages": allFree("ids threads seen flagged add_labels remove_labels"),
  "/api/identities/{handle}/messages/{id}": { seen: free(true), flagged: free(true), labels: free([]) },
  "/api/identities/{handle}/tunnel": {
    host_header: free("preserve"),
    tls: free("terminate"), // The edge rejects TLS passthrough if a password is set.
    allowed_networks: loosens([]),
    basic_auth: loosens(null),
    proxy_protocol: free(false),
    callers: loosens("anyone"),
  },
  // The Event types of a changed Webhook are checked against the caller's scopes below.
  "/api/identities/{handle}/webhooks/{id}": {
    url: free("https://example.org/hook"),
    event_types: free(["webhook.failed"]),
    description: free("Failures"),
    status: free("disabled"),
  },
}

const patches = Object.entries<Record<string, any>>(document["paths"]).filter(([, methods]) => methods["patch"])
const membersOf = (methods: Record<string, any>): ReadonlyArray<string> => {
  const { schema } = methods["patch"].requestBody.content["application/json"]
  const resolved = schema.$ref === undefined ? schema : document["components"].schemas[schema.$ref.split("/").pop()]
  return Object.keys(resolved.properties)
}

describe("Members of a change", () => {
  it("are all listed as reserved for the admin scope, or free", () => {
    const described = patches.map(([path, methods]) => [path, [...membersOf(methods)].sort()])
    const placed = Object.entries(members).map(([path, of]) => [path, Object.keys(of).sort()])
    expect(Object.fromEntries(described)).toEqual(Object.fromEntries(placed))
  })

  const all = Object.entries(members).flatMap(([path, of]) =>
    Object.entries(of).map(([member, { value, loosens }]) => ({ path, member, value, loosens })),
  )
  const set = async ({ path, member, value }: (typeof all)[number], token: string) =>
    call(
      service.base,
      "PATCH",
      path
        .replace("{handle}", handle)
        .replace("{platform}", "mastodon")
        .replace("{id}", path.includes("grants") ? grantId : path.includes("webhooks") ? webhookId : messageId),
      { token, body: { [member]: value } },
    )
  const scopeOfPatch = (path: string) => {
    const found = endpoints.find(
      ({ endpoint }) => endpoint.method === "PATCH" && endpoint.path.replace(/:(\w+)/g, "{$1}") === path,
    )!
    return { scope: found.scope!, caller: policyOf(found.endpoint).scope }
  }

  it.each(all.map((one) => [one.path, one.member, one] as const))(
    "are checked individually for every kind of credential: %s %s",
    async (path, member, one) => {
      const { scope, caller } = scopeOfPatch(path)
      const [capability] = scope.split(":")
      const admin = `${capability}:admin`
      const outcome = async (token: string) => {
        const { status, body } = await set(one, token)
        return status === 403 ? body : "may"
      }
      const others = scopeNames.filter((name) => !name.startsWith(`${capability}:`))
      expect(await outcome(session)).toBe("may")
      if (caller === "session") {
        for (const token of [await keyOf({}), await keyOf({ scopes: [scope] }), secrets["identity_key"]])
          expect((await outcome(token)).code).toBe("session_required")
        return
      }
      expect(await outcome(await keyOf({}))).toBe("may")
      expect(await outcome(await keyOf({ scopes: [admin] }))).toBe("may")
      expect(await outcome(await keyOf({ scopes: others }))).toMatchObject({ code: "scope_missing", scopes: [scope] })
      if (caller === "org") return expect((await outcome(secrets["identity_key"])).code).toBe("org_scope_required")
      if (caller === "admin") return expect((await outcome(secrets["identity_key"])).code).toBe("admin_required")
      const narrow = await outcome(await keyOf({ scopes: [scope] }))
      const own = [secrets["identity_key"], await keyOf({ scopes: [scope, admin] }, at("/keys"))]
      if (!one.loosens) {
        expect(narrow).toBe("may")
        for (const token of own) expect(await outcome(token)).toBe("may")
        return
      }
      expect(narrow).toMatchObject({ code: "scope_missing", scopes: [admin] })
      expect(narrow.detail).toContain(member)
      for (const token of own) {
        const refused = await outcome(token)
        expect(refused).toMatchObject({ code: "admin_required", errors: [{ path: `/${member}` }] })
      }
    },
  )

  it("that are reserved are rejected for an app, whatever its scopes", () => {
    for (const { endpoint } of endpoints) {
      const policy = policyOf(endpoint)
      for (const member of Object.keys(policy.reserved?.members ?? {})) {
        const { value } = all.find((one) => one.member === member && one.loosens)!
        const app = { kind: "grant", scopes: scopesOf("*"), credentialId: "g" } as unknown as CallerInfo
        const needed = reservedScopeOf(endpoint)
        expect(looksAtBody(policy, needed, app)).toBe(true)
        expect(judgeBody(policy, needed, app, { [member]: value }, { baseUrl: "" })?.code).toBe("admin_required")
      }
    }
  })

  it("that tighten a control need the write scope only", async () => {
    const token = await keyOf({ scopes: ["mail:write", "connector:write"] }, at("/keys"))
    const set = (path: string, body: object) => call(service.base, "PATCH", at(path), { token, body })
    expect((await set("/mail", { outgoing: "stopped", reason: "test" })).status).toBe(200)
    expect((await set("/connectors", { paused: true })).status).toBe(200)
    const restored = { token: session, body: { outgoing: "active" } }
    expect((await call(service.base, "PATCH", at("/mail"), restored)).status).toBe(200)
    await call(service.base, "PATCH", at("/connectors"), { token: session, body: { paused: false } })
  })
})

describe("Approval of outgoing mail", () => {
  it("is required for a key that may send but not approve", async () => {
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

describe("Obtainable credentials", () => {
  /** Operations that return or change a credential or another secret, and the rule that limits the result. */
  const rules: Readonly<Record<string, string>> = {
    "api_keys.create": "the rights of the key are judged (credentials.test.ts)",
    "api_keys.createForIdentity": "the rights of the key are judged (credentials.test.ts)",
    "api_keys.rotate": "the rights of the key are judged (credentials.test.ts)",
    "api_keys.revoke": "takes rights away",
    "device_login.start": "public: gives nothing before it is approved",
    "device_login.poll": "public: what was approved is within the approver (credentials.test.ts)",
    "device_confirmation.approve": "the rights of the key are judged (credentials.test.ts)",
    "device_confirmation.deny": "gives nothing",
    "exports.archive": "account:secret; values of the Vault for a session only",
    "grants.update": "session only",
    "grants.revoke": "takes rights away",
    "identities.secrets": "full rights (credentials.test.ts)",
    "proof.createToken": "proof:token; never more than the credential (proof/tokens.test.ts)",
    "proof.createSignature": "proof:token; one request, for a minute (proof/signatures.test.ts)",
    "agent_sign_ins.create": "proof:token; a code for one site, for a minute (proof/sign-in-rights.test.ts)",
    "identities.rotate": "full rights (credentials.test.ts)",
    "session.revoke": "takes rights away",
    "session.revokeOne": "takes rights away",
    "session.revokeAll": "takes rights away",
    "vault.value": "vault:secret",
    "webhooks.create": "signs deliveries, is no credential of the API",
    "webhooks.rotate": "signs deliveries, is no credential of the API",
  }

  it("are listed here for every operation that returns or changes a credential", () => {
    const about = /^(?:api_keys|device_login|device_confirmation|grants|session)\.|^identities\.rotate$/
    const found = endpoints
      .filter(
        ({ id, endpoint }) =>
          Context.get(endpoint.annotations, ShowsSecret) ||
          Context.get(endpoint.annotations, Reveals) ||
          (about.test(id) && endpoint.method !== "GET"),
      )
      .map(({ id }) => id)
    expect(found.toSorted()).toEqual(Object.keys(rules).toSorted())
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
  /** Decides independently of the code under test by trying every scope, every day and some addresses. */
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

  it("never exceed the credential of the caller", () => {
    fc.assert(
      fc.property(rights, rights, (maker, requested) => {
        const made = judgeRights(
          maker,
          {
            scopes: requested.scopes.names,
            ...(requested.expiresAt === null ? {} : { expires_at: requested.expiresAt }),
          },
          isScope,
          0,
        )
        if (Result.isSuccess(made)) expect(isWider(made.success, maker)).toBe(false)
        else
          expect(
            isWider(
              { ...requested, expiresAt: requested.expiresAt ?? maker.expiresAt, networks: maker.networks },
              maker,
            ),
          ).toBe(true)
        const full = maker.scopes.all && maker.expiresAt === null && maker.networks === null
        expect(fallsShort(maker) === undefined).toBe(full)
      }),
      { numRuns: 3_000 },
    )
  })
})

describe("Webhook", () => {
  const path = () => at("/webhooks")
  const url = "https://example.org/hook"
  const make = async (token: string, event_types: ReadonlyArray<string>) =>
    call(service.base, "POST", path(), { token, body: { url, event_types } })

  it("carries no more than its creator may read", async () => {
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

  it("of another creator cannot be redirected, resumed or read without the scopes of its Events", async () => {
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
})

/**
 * No credential can create, rotate or approve a stronger one. Generated pairs of credentials are tested with every operation that returns
 * or changes a credential.
 */
import { isWithin, networksOf } from "@svc/domain/account/Networks"
import { allows, everything, type ScopeName, scopesOf } from "@svc/domain/account/Scope"
import { scopeNames } from "@svc/domain/ScopeTable"
import * as fc from "fast-check"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type ApiResponse, call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
let handle: string
let identityKey: string
beforeAll(async () => {
  service = await startService({ env: { SVC_TRUSTED_PROXIES: "127.0.0.0/8" } })
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  identityKey = made.secrets.identity_key
})
afterAll(() => service.stop())
beforeEach(() => void (made = 0))

interface Asked {
  readonly scopes?: ReadonlyArray<string>
  readonly expires_in_days?: number
  readonly networks?: ReadonlyArray<string>
}

interface Key {
  readonly id: string
  readonly scopes: ReadonlyArray<string>
  readonly expires_at: string | null
  readonly networks: ReadonlyArray<string> | null
}

interface Made {
  readonly key: string
  readonly api_key: Key
}

/** The tests call from 127.0.0.1, so every network limit includes it. */
const networks = fc.constantFrom(["127.0.0.0/8"], ["127.0.0.1"], ["127.0.0.0/8", "192.0.2.0/24"], ["0.0.0.0/0"])
const some = (always: ReadonlyArray<string>) =>
  fc.oneof(
    fc.constant([everything]),
    fc.subarray([...scopeNames], { minLength: 1 }).map((names) => [...new Set([...always, ...names])]),
  )
const requestedRights = (always: ReadonlyArray<string>) =>
  fc.record(
    { scopes: some(always), expires_in_days: fc.constantFrom(1, 30, 365), networks },
    { requiredKeys: always.length > 0 ? ["scopes"] : [] },
  ) as fc.Arbitrary<Asked>
/** The rights of a key that may manage keys and devices and read the Identity Key, within its limits. */
const maker = requestedRights(["account:admin", "identity:admin", "identity:secret"])
const other = requestedRights([])

const post = (path: string, token: string, body?: object) =>
  call(service.base, "POST", path, { token, ...(body === undefined ? {} : { body }) })

const collect = (body: object) => call(service.base, "POST", "/api/auth/device/token", { body })

/** Creates a key with the session, which has no limits, passes it to `use`, and revokes it. An account has at most 200 keys. */
const having = async (rights: Asked, use: (made: Made) => Promise<void>) => {
  const { body } = await post("/api/keys", session, { name: "k", ...rights })
  await use(body)
  await end(body.api_key.id)
}
const end = (id: string) => call(service.base, "DELETE", `/api/keys/${id}`, { token: session })

const addresses = ["127.0.0.1", "127.9.9.9", "192.0.2.7", "203.0.113.9", "2001:db8::1"]
/** Decides independently of the code under test by trying every scope, the expiry, and some addresses. */
const isWider = (one: Key, than: Key) => {
  const may = ({ scopes }: Key, name: string) => allows(scopesOf(scopes.join(" ")), name as ScopeName)
  const from = ({ networks }: Key, address: string) =>
    networks === null || isWithin(networksOf(networks.join(" "))!, address)
  const endOf = ({ expires_at }: Key) => (expires_at === null ? Infinity : Date.parse(expires_at))
  return (
    [everything, ...scopeNames].some((name) => may(one, name) && !may(than, name)) ||
    endOf(one) > endOf(than) ||
    addresses.some((address) => from(one, address) && !from(than, address))
  )
}

let made = 0
/** Checks that a resulting key is within its creator's limits, or that the rejection states that it exceeds them. */
const expectWithin = async ({ status, body }: ApiResponse, than: Key) => {
  if (status >= 300) return expect([status, body.code]).toEqual([403, "scope_exceeds"])
  made++
  expect(isWider(body.api_key, than), JSON.stringify([body.api_key, than])).toBe(false)
  await end(body.api_key.id)
}

const narrower: readonly [Asked, Asked] = [{ scopes: [everything] }, { scopes: ["mail:read"], expires_in_days: 1 }]
const pairs = (check: (maker: Made, other: Asked) => Promise<void>) =>
  fc.assert(
    fc.asyncProperty(maker, other, (rights, wanted) => having(rights, (made) => check(made, wanted))),
    { numRuns: 20, examples: [[...narrower]] },
  )

let starts = 0

describe("Credential with limits", () => {
  it("creates no key beyond its own limits", async () => {
    await pairs(async ({ key, api_key }, wanted) => {
      await expectWithin(await post("/api/keys", key, { name: "made", ...wanted }), api_key)
      await expectWithin(await post(`/api/identities/${handle}/keys`, key, { name: "made", ...wanted }), api_key)
    })
    expect(made).toBeGreaterThan(0)
  })

  it("obtains no key beyond its own limits by rotating another", async () => {
    await pairs(async ({ key, api_key }, wanted) => {
      for (const path of ["/api/keys", `/api/identities/${handle}/keys`]) {
        const { body } = await post(path, session, { name: "theirs", ...wanted })
        await expectWithin(await post(`/api/keys/${body.api_key.id}/rotate`, key, {}), api_key)
        await end(body.api_key.id)
      }
    })
    expect(made).toBeGreaterThan(0)
  })

  it("approves no device login beyond its own limits", async () => {
    await pairs(async ({ key, api_key }, { scopes, expires_in_days }) => {
      // Device requests are limited per client address, so each request has another address.
      const { body } = await call(service.base, "POST", "/api/auth/device", {
        body: { name: "terminal", scopes, expires_in_days },
        headers: { "x-forwarded-for": `198.51.100.${starts++ % 250}` },
      })
      const approved = await post(`/api/auth/device/${body.user_code}/approve`, key, {})
      if (approved.status !== 204) return expect([approved.status, approved.body.code]).toEqual([403, "scope_exceeds"])
      await expectWithin(await collect({ device_code: body.device_code }), api_key)
    })
    expect(made).toBeGreaterThan(0)
  })

  it("neither reads nor replaces the Identity Key, which has no limits", () =>
    pairs(async ({ key, api_key }) => {
      const isUnlimited =
        api_key.scopes.includes(everything) && api_key.expires_at === null && api_key.networks === null
      const read = await call(service.base, "GET", `/api/identities/${handle}/identity-key`, { token: key })
      if (isUnlimited) return expect(read.status).toBe(200)
      const rotated = await post(`/api/identities/${handle}/identity-key/rotate`, key)
      for (const { status, body } of [read, rotated]) expect([status, body.code]).toEqual([403, "scope_exceeds"])
      // The former key was not replaced.
      expect((await call(service.base, "GET", "/api/auth/whoami", { token: identityKey })).status).toBe(200)
    }))

  it("cannot change the Grant of an app", () =>
    pairs(async ({ key }) => {
      const { status, body } = await call(service.base, "PATCH", "/api/grants/0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10", {
        token: key,
        body: { scopes: ["mail:read"] },
      })
      expect([status, body.code]).toEqual([403, "session_required"])
    }))
})

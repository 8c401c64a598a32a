/** The scopes that a scope includes, and the rights of new keys and of keys that replace others, at the edge of each rule. */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { judgeRights, renewed } from "@svc/domain/account/KeyRights"
import { networksOf } from "@svc/domain/account/Networks"
import type { EndpointPolicy } from "@svc/domain/account/Policy"
import { judge, judgeBody } from "@svc/domain/account/PolicyEvaluation"
import { allows, includes, scopesOf, unlimited } from "@svc/domain/account/Scope"
import { displayPrefix, make } from "@svc/domain/account/Token"
import { identityEventTypes, lacksToReceive } from "@svc/domain/events/Event"
import { Result } from "effect"
import { describe, expect, it } from "vitest"

const actions = ["read", "write", "send", "admin", "token", "secret"] as const

describe("A scope", () => {
  it.each([
    ["mail:read", "read"],
    ["mail:write", "read write"],
    ["mail:send", "read write send"],
    ["mail:admin", "read write send admin"],
    ["mail:token", "token"],
    ["mail:secret", "secret"],
    ["*", "read write send admin token secret"],
  ])("%s includes %s of its capability", (name, included) => {
    const held = actions.filter((action) => allows(scopesOf(name), `mail:${action}`))
    expect(held.join(" ")).toBe(included)
    expect(allows(scopesOf(name), "card:read")).toBe(name === "*")
    expect(allows(scopesOf(name), null)).toBe(true)
  })

  it("is listed once, by capability and from read upwards", () => {
    const scopes = scopesOf("account:secret  mail:token mail:read identity:admin mail:read")
    expect(scopes.names).toEqual(["identity:admin", "mail:read", "mail:token", "account:secret"])
    expect([scopes.text, scopes.all]).toEqual(["identity:admin mail:read mail:token account:secret", false])
    expect(scopesOf("mail:read * card:read")).toMatchObject({ names: ["*"], text: "*", all: true })
  })

  it("lies within others if they include everything that it includes", () => {
    const within = (inner: string, outer: string) => includes(scopesOf(outer), scopesOf(inner))
    expect(within("mail:read mail:send", "mail:admin")).toBe(true)
    expect(within("mail:admin", "mail:read mail:send")).toBe(false)
    expect(within("mail:read card:read", "mail:admin")).toBe(false)
    expect([within("*", "mail:admin"), within("mail:admin", "*"), within("*", "*")]).toEqual([false, true, true])
  })
})

const day = 86_400_000
const now = 1_000 * day
const inDays = (days: number) => new Date(now + days * day)
const maker = { scopes: scopesOf("mail:admin"), expiresAt: inDays(30), networks: networksOf("192.0.2.0/24") }
const isKnown = (name: string) => /^(?:mail|card):(?:read|admin)$/.test(name)

describe("The rights of a new key", () => {
  const of = (request: Parameters<typeof judgeRights>[1], by: Parameters<typeof judgeRights>[0] = maker) =>
    Result.merge(judgeRights(by, request, isKnown, now)) as any

  it("are those of its creator unless the request names less", () => {
    expect(of({})).toEqual(maker)
    expect(of({ scopes: ["mail:read"], expires_in_days: 30, networks: ["192.0.2.7/32", "192.0.2.7"] })).toEqual({
      scopes: scopesOf("mail:read"),
      expiresAt: inDays(30),
      networks: networksOf("192.0.2.7"),
    })
    const free = { scopes: unlimited, expiresAt: null, networks: null }
    expect(of({}, free)).toEqual(free)
    expect(of({ expires_at: inDays(1) }, free).expiresAt).toEqual(inDays(1))
  })

  it("are never wider, and the error says what exceeds them", () => {
    expect(of({ scopes: ["mail:read", "card:read", "card:admin"] })).toMatchObject({
      code: "scope_exceeds",
      scopes: ["card:read", "card:admin"],
    })
    expect(of({ scopes: ["*"] })).toMatchObject({ code: "scope_exceeds", scopes: ["*"] })
    expect(of({ expires_in_days: 31 })).toMatchObject({
      code: "scope_exceeds",
      detail: expect.stringContaining(inDays(30).toISOString()),
    })
    expect(of({ networks: ["192.0.0.0/16"] })).toMatchObject({
      code: "scope_exceeds",
      detail: expect.stringContaining("outside the networks"),
    })
  })

  it("end in the future, at one time", () => {
    expect(of({ expires_at: new Date(now) })).toMatchObject({ errors: [{ path: "/expires_at" }] })
    expect(of({ expires_at: new Date(now + 1) }).expiresAt).toEqual(new Date(now + 1))
    expect(of({ expires_at: inDays(1), expires_in_days: 1 })).toMatchObject({ errors: [{ path: "/expires_in_days" }] })
  })

  it("name scopes that exist; the first 20 others are listed", () => {
    const wrong = Array.from({ length: 21 }, (_, n) => `mail:x${n}`)
    expect(of({ scopes: ["mail:read", ...wrong] })).toMatchObject({
      code: "scope_unknown",
      detail: "The scope mail:x0 does not exist.",
      scopes: wrong.slice(0, 20),
    })
  })
})

describe("The rights of a key that replaces another", () => {
  const former = { scopes: scopesOf("mail:read"), networks: networksOf("192.0.2.7"), createdAt: inDays(-10) }
  const end = (expiresAt: Date | null, by: Date | null) => {
    const rights = Result.merge(renewed({ ...maker, expiresAt: by }, { ...former, expiresAt }, now)) as any
    expect(rights).toMatchObject({ scopes: former.scopes, networks: former.networks })
    return rights.expiresAt
  }

  it("are the same, with the same lifetime from now on, and end no later than the creator", () => {
    expect(end(inDays(10), null)).toEqual(inDays(20))
    expect(end(inDays(10), inDays(30))).toEqual(inDays(20))
    expect(end(inDays(10), inDays(19))).toEqual(inDays(19))
    expect(end(null, inDays(19))).toEqual(inDays(19))
    expect(end(null, null)).toBeNull()
  })

  it("are refused to a creator with fewer", () => {
    const narrow = { ...maker, scopes: scopesOf("card:admin") }
    expect(Result.merge(renewed(narrow, { ...former, expiresAt: null }, now))).toMatchObject({
      code: "scope_exceeds",
      scopes: ["mail:read"],
    })
    const near = { ...maker, networks: networksOf("192.0.2.0/24") }
    const rights = (networks: typeof near.networks | null) =>
      Result.merge(renewed(near, { ...former, networks, expiresAt: null }, now))
    expect(rights(null)).toMatchObject({ code: "scope_exceeds" })
    expect(rights(networksOf("198.51.100.7"))).toMatchObject({ code: "scope_exceeds" })
    expect(rights(former.networks)).toMatchObject({ networks: former.networks })
  })
})

it("A key is listed by its kind and the six characters after it", () => {
  expect(displayPrefix(make("admin_key", new Uint8Array(32)))).toBe("svc_admin_000000")
  expect(displayPrefix("abcdefgh")).toBe("abcdef")
})

it("A rejected app is told as whom it acts, by at most ten Handles", () => {
  const policy = { scope: "org", names: { _tag: "Nowhere" }, filtered: false } as EndpointPolicy
  const detail = (count: number) => {
    const identities = Array.from({ length: count }, (_, n) => ({ handle: `a${n}`, canonical: `a${n}` }))
    const caller = { kind: "grant", identities } as unknown as CallerInfo
    return (Result.merge(judge(policy, caller, { _tag: "Nothing" })) as any).detail as string
  }
  expect(detail(1)).toBe("You act as @a0. This concerns the whole account, to which you have no access.")
  expect(detail(10)).toMatch(/^You act as @a0, .*@a9\. This/)
  expect(detail(12)).toMatch(/^You act as @a0, .*@a9 and 2 more\. This/)
  expect(detail(0)).toMatch(/^This/)
})

it("A rejected Identity Key is told why", () => {
  const caller = { kind: "identity_key", identities: [{ handle: "ada", canonical: "ada" }] } as unknown as CallerInfo
  const detail = (policy: object) =>
    (
      Result.merge(
        judge({ names: { _tag: "Nowhere" }, ...policy } as EndpointPolicy, caller, { _tag: "Nothing" }),
      ) as any
    ).detail
  expect(detail({ scope: "admin", because: "Only people may." })).toBe("You act as @ada. Only people may.")
  expect(detail({ scope: "admin" })).toBe("You act as @ada. An Identity Key may not do this.")
  expect(detail({ scope: "org" })).toBe("You act as @ada. An Identity Key cannot act for the whole Org.")
})

it("A member of a body is reserved by its value, also if that is null", () => {
  const caller = { kind: "identity_key", scopes: scopesOf("tunnel:write") } as CallerInfo
  const reserved = { detail: "Ask.", members: { password: (value: unknown) => value === null } }
  const judged = (body: object) =>
    judgeBody({ reserved } as unknown as EndpointPolicy, "tunnel:admin", caller, body, { baseUrl: "" })
  expect(judged({ password: null })).toMatchObject({ code: "admin_required", errors: [{ path: "/password" }] })
  expect([judged({ password: "x" }), judged({ password: undefined }), judged({ other: null })]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})

it("A subscription needs the read scope of each of its Event types", () => {
  for (const type of identityEventTypes) {
    const [needed, ...others] = lacksToReceive(scopesOf("webhook:read"), [type])
    if (needed === undefined) expect(type).toMatch(/^webhook\./)
    else expect(lacksToReceive(scopesOf(needed), [type])).toEqual([])
    expect(others).toEqual([])
  }
  // All types need each of these scopes, named once; `event:read` is enough for any type.
  const needed = identityEventTypes.flatMap((type) => lacksToReceive(scopesOf("webhook:read"), [type]))
  expect(needed).toContain("mail:read")
  expect(lacksToReceive(scopesOf("webhook:read"), ["*"])).toEqual([...new Set(needed)])
  expect(lacksToReceive(scopesOf("event:read"), ["*"])).toEqual([])
})

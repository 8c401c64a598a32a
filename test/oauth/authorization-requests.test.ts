/** Authorization requests: which are shown to the user, which are refused and to whom, and what each asks for. */
import { clientIdOf, isSignIn, judge, judgeSignIn, queryOf } from "@svc/api/oauth/AuthorizationRequest"
import type { OAuthClient } from "@svc/cluster/oauth/OAuthClients"
import type { AddressBook } from "@svc/domain/Addresses"
import { describe, expect, it } from "vitest"

const book = {
  environment: "production",
  baseUrl: "https://id.example.org",
  profileBase: "https://people.example.org",
  tunnelDomain: "tunnel.example.org",
} as AddressBook
const redirect = "https://app.example/back?x=1"
const client = { id: "oc_1", name: "App", redirects: [redirect] } as unknown as OAuthClient
const challenge = "c".repeat(43)

type More = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
/** Returns a query with these parameters in place of the usual ones; a list repeats its parameter. */
const queryWith = (more: More = {}) => {
  const all: More = {
    client_id: "oc_1",
    redirect_uri: redirect,
    response_type: "code",
    scope: "mail:read",
    state: "s&1",
    code_challenge: challenge,
    code_challenge_method: "S256",
    ...more,
  }
  return new URLSearchParams(
    Object.entries(all).flatMap(([name, value = []]) => [value].flat().map((one): [string, string] => [name, one])),
  )
}
const outcome = (judged: { readonly _tag: string; readonly to?: string; readonly wanted?: object }) => {
  if (judged.to === undefined) return judged._tag
  const { error, error_description: _, ...rest } = Object.fromEntries(new URL(judged.to).searchParams)
  return [error, rest]
}
const app = (more?: More) => outcome(judge(book, client, queryWith(more)))
const site = (more?: More) => outcome(judgeSignIn(book, client, queryWith({ scope: "openid", ...more })))
const iss = book.baseUrl

describe("An authorization request", () => {
  it.each<[string, More]>([
    ["without a redirect address", { redirect_uri: undefined }],
    ["with two redirect addresses", { redirect_uri: [redirect, redirect] }],
    ["with a redirect address that is not registered", { redirect_uri: "https://app.example/other" }],
    ["with a redirect address on this service", { redirect_uri: "https://ada.tunnel.example.org/" }],
  ])("%s is only shown to the user", (_, more) => {
    expect([app(more), site(more)]).toEqual(["Unusable", "Unusable"])
  })

  it("with a redirect address on this service is only shown to the user, even if it is registered", () => {
    const own = "https://ada.tunnel.example.org/"
    const ours = { ...client, redirects: [redirect, own] }
    const query = queryWith({ redirect_uri: own, scope: "openid" })
    expect([judge(book, ours, query)._tag, judgeSignIn(book, ours, query)._tag]).toEqual(["Unusable", "Unusable"])
  })

  it.each<[string, More, string]>([
    ["repeats a parameter", { prompt: ["login", "login"] }, "invalid_request"],
    ["repeats the nonce", { nonce: ["a", "b"] }, "invalid_request"],
    ["has a request object", { request: "x" }, "request_not_supported"],
    ["refers to a request object", { request_uri: "https://app.example/x" }, "request_uri_not_supported"],
    ["wants a token", { response_type: "token" }, "unsupported_response_type"],
    ["wants nothing", { response_type: undefined }, "unsupported_response_type"],
    ["wants a fragment", { response_mode: "fragment" }, "invalid_request"],
    ["has no challenge", { code_challenge: undefined }, "invalid_request"],
    ["has a short challenge", { code_challenge: challenge.slice(1) }, "invalid_request"],
    ["has a long challenge", { code_challenge: `${challenge}c` }, "invalid_request"],
    ["has a plain challenge", { code_challenge_method: "plain" }, "invalid_request"],
    ["names no method", { code_challenge_method: undefined }, "invalid_request"],
  ])("that %s is refused to the client, with its state and the issuer", (_, more, error) => {
    expect(app(more)).toEqual([error, { x: "1", state: "s&1", iss }])
    expect(site(more)).toEqual([error, { x: "1", state: "s&1", iss }])
    expect(app({ ...more, state: undefined })).toEqual([error, { x: "1", iss }])
    expect(app({ ...more, state: "" })).toEqual([error, { x: "1", state: "", iss }])
  })

  it("names its client once", () => {
    const idOf = (...ids: ReadonlyArray<string>) => clientIdOf(queryWith({ client_id: ids }))
    expect([idOf("oc_1"), idOf(), idOf(""), idOf("oc_1", "oc_1"), idOf("a\0")]).toEqual([
      "oc_1",
      ...Array(4).fill(undefined),
    ])
  })

  it("has the address of this service, and at most 8,192 characters of parameters", () => {
    const at = `${book.baseUrl}/auth/authorize`
    expect(queryOf(book, `${at}?scope=openid`)?.get("scope")).toBe("openid")
    const long = (length: number) => queryOf(book, `${at}?${"x".repeat(length - 1)}`)
    expect([long(8192) === undefined, long(8193) === undefined]).toEqual([false, true])
    for (const other of [
      `${book.baseUrl}/auth/other`,
      "https://evil.example/auth/authorize",
      "http://id.example.org/auth/authorize",
      "https://user@id.example.org/auth/authorize",
      "https://:pw@id.example.org/auth/authorize",
      "nonsense",
    ])
      expect([other, queryOf(book, other)]).toEqual([other, undefined])
  })
})

describe("The request of an app", () => {
  const wanted = (more?: More) => {
    const judged = judge(book, client, queryWith(more))
    return judged._tag === "Wanted" ? judged.wanted : undefined
  }

  it("wants the scopes that exist, each once, or the least useful ones", () => {
    expect(wanted({ scope: "mail:read openid mail:read card:read x:y" })?.scopes).toEqual(["mail:read", "card:read"])
    for (const scope of ["", "openid", undefined])
      expect(wanted({ scope })?.scopes).toEqual(["identity:read", "mail:read", "card:read"])
    expect(wanted()).toMatchObject({ redirect, challenge, resource: "https://id.example.org/api/mcp" })
    expect(wanted()!.back({ code: "c" })).toBe(`${redirect}&code=c&state=s%261&iss=https%3A%2F%2Fid.example.org`)
  })

  it("is for this service, and is confirmed by a person", () => {
    expect(app({ resource: ["https://id.example.org", "https://id.example.org/api/mcp/"] })).toBe("Wanted")
    expect(app({ resource: ["https://id.example.org", "https://other.example"] })).toEqual([
      "invalid_target",
      expect.anything(),
    ])
    expect(app({ prompt: "login none" })).toEqual(["consent_required", expect.anything()])
    expect(app({ prompt: "consent", response_mode: "query" })).toBe("Wanted")
  })
})

describe("The request of a site that signs an agent in", () => {
  it.each<[More, boolean]>([
    [{ scope: "openid" }, true],
    [{ scope: "profile openid x" }, true],
    [{ scope: "profile" }, false],
    [{ scope: undefined }, false],
    [{ scope: "openid mail:read" }, false],
    [{ scope: "openid", resource: "https://id.example.org" }, false],
  ])("%j asks for openid and for nothing of the API: %s", (more, signsIn) => {
    expect(isSignIn(queryWith(more))).toBe(signsIn)
    expect(site(more)).toEqual(signsIn ? "Wanted" : ["invalid_scope", expect.anything()])
  })

  it("has the scopes of OpenID Connect that are known, and a nonce of at most 500 characters", () => {
    const judged = judgeSignIn(book, client, queryWith({ scope: "email x openid", nonce: "n".repeat(500) }))
    expect(judged).toMatchObject({
      wanted: { scopes: ["openid", "email"], nonce: "n".repeat(500), redirect, challenge },
    })
    expect(judgeSignIn(book, client, queryWith({ scope: "openid" }))).toMatchObject({ wanted: { nonce: null } })
    for (const nonce of ["n".repeat(501), "n\0"])
      expect(site({ nonce })).toEqual(["invalid_request", expect.anything()])
  })
})

/** What strangers read about the service: the OpenID configuration, the key set, WebFinger and security.txt. */
import * as Discovery from "@svc/cli/doctor/Discovery"
import { Effect } from "effect"
import { importJWK, type JWK } from "jose"
import * as openid from "openid-client"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let handle: string
beforeAll(async () => {
  service = await sharedService()
  handle = (await makeIdentity(service.base, (await signUp(service.base)).session)).handle
})

const get = (path: string) => call(service.base, "GET", path)

describe("OpenID configuration", () => {
  it("is read by openid-client, and equals the OAuth metadata", async () => {
    const found = await openid.discovery(new URL(service.base), "any", undefined, undefined, {
      execute: [openid.allowInsecureRequests],
    })
    const metadata = found.serverMetadata()
    expect(metadata).toMatchObject({
      issuer: service.base,
      jwks_uri: `${service.base}/.well-known/jwks.json`,
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["RS256", "ES256"],
    })
    const [configuration, oauth] = [
      await get("/.well-known/openid-configuration"),
      await get("/.well-known/oauth-authorization-server"),
    ]
    expect(configuration.body).toEqual(oauth.body)
    // A cache may give these responses to pages of other sites, although a program requested them.
    const resource = await get("/.well-known/oauth-protected-resource/api/mcp")
    for (const { headers } of [configuration, oauth, resource]) {
      expect(headers.get("cache-control")).toBe("public, max-age=3600")
      expect(headers.get("access-control-allow-origin")).toBe("*")
    }
  })
})

describe("key set", () => {
  it("has one RS256 and one ES256 key, without private members, for concurrent first readers too", async () => {
    const sets = await Promise.all(Array.from({ length: 4 }, () => get("/.well-known/jwks.json")))
    expect(new Set(sets.map(({ body }) => JSON.stringify(body)))).toHaveLength(1)
    const { body, headers } = sets[0]!
    const keys = body.keys as ReadonlyArray<JWK>
    expect(keys.map(({ alg }) => alg).toSorted()).toEqual(["ES256", "RS256"])
    for (const key of keys) {
      expect(key.use).toBe("sig")
      for (const member of ["d", "p", "q", "dp", "dq", "qi"]) expect(key).not.toHaveProperty(member)
      await importJWK(key)
    }
    expect(headers.get("content-type")).toMatch(/^application\/jwk-set\+json/)
    expect(headers.get("cache-control")).toBe("public, max-age=3600")
  })
})

describe("WebFinger", () => {
  const finger = (resource: string, more = "") =>
    get(`/.well-known/webfinger?resource=${encodeURIComponent(resource)}${more}`)

  it("describes an Identity by its mail address, its DID and its profile", async () => {
    const did = `did:web:${encodeURIComponent(new URL(service.base).host)}:%40${handle}`
    const address = (await get(`/api/profiles/${handle}`)).body.email
    for (const resource of [`acct:${address}`, did, `${service.base}/@${handle}`]) {
      const { status, body, headers } = await finger(resource)
      expect(status).toBe(200)
      expect(body.subject).toBe(resource)
      expect(body.aliases).toHaveLength(2)
      expect(headers.get("content-type")).toMatch(/^application\/jrd\+json/)
      expect(headers.get("access-control-allow-origin")).toBe("*")
      const links = body.links as ReadonlyArray<{ rel: string; href: string }>
      const hrefOf = (rel: string) => links.find((link) => link.rel === rel)?.href
      expect(hrefOf("self")).toBe(`${service.base}/@${handle}/did.json`)
      expect(hrefOf("http://webfinger.net/rel/profile-page")).toBe(`${service.base}/@${handle}`)
      expect((await get(new URL(hrefOf("self")!).pathname)).body.id).toBe(did)
    }
  })

  it("finds an Identity by any spelling of its Handle, which its links name in the stored spelling", async () => {
    const spelling = `${handle[0]!.toUpperCase()}-${handle.slice(1)}`
    const { host } = new URL(service.base)
    const domain = (await get(`/api/profiles/${handle}`)).body.email.split("@")[1].toUpperCase()
    for (const resource of [
      `acct:${spelling}@${domain}`,
      `mailto:${spelling}@${host}`,
      `${service.base}/@${spelling}/`,
    ]) {
      const { status, body } = await finger(resource)
      expect([status, body.subject], resource).toEqual([200, resource])
      expect(body.aliases, resource).toContain(`${service.base}/@${handle}`)
    }
  })

  it("returns only the links of the requested relation", async () => {
    const { body } = await finger(`${service.base}/@${handle}`, "&rel=self")
    expect(body.links.map(({ rel }: { rel: string }) => rel)).toEqual(["self"])
  })

  it("refuses a request without one resource, and knows no other domain and no unknown Identity", async () => {
    expect((await get("/.well-known/webfinger")).body.code).toBe("invalid_request")
    expect((await finger("ada", "")).body.code).toBe("invalid_request")
    expect((await finger(`${service.base}/@${handle}`, "&resource=acct:ada@mail.example")).body.code).toBe(
      "invalid_request",
    )
    expect((await finger(`acct:${handle}@elsewhere.example`)).status).toBe(404)
    expect((await finger(`acct:nobody-here@${new URL(service.base).host}`)).status).toBe(404)
  })
})

describe("security.txt", () => {
  it("names a contact and expires within a year", async () => {
    const { body, headers } = await get("/.well-known/security.txt")
    expect(headers.get("content-type")).toMatch(/^text\/plain/)
    expect(body).toMatch(/^Contact: mailto:abuse@/)
    const expires = Date.parse(/^Expires: (.+)$/m.exec(body)![1]!)
    expect(expires).toBeGreaterThan(Date.now())
    expect(expires).toBeLessThan(Date.now() + 365 * 86_400_000)
  })
})

describe("svc doctor", () => {
  it("reads what verifiers read, and names obstacles", async () => {
    const found = (api: string, baseUrl: string, environment: "development" | "production" = "development") =>
      Effect.runPromise(Discovery.finding(api, { baseUrl, environment }))
    const { base } = service
    expect(await found(base, base)).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/ publishes (?:RS256, ES256|ES256, RS256)$/),
    })
    expect(await found(base, base, "production")).toMatchObject({ status: "warn" })
    expect(await found(base, "https://api.example.org")).toMatchObject({
      status: "fail",
      detail: `the issuer is ${base}, not https://api.example.org`,
    })
    expect(await found("http://127.0.0.1:9", base)).toMatchObject({
      status: "fail",
      detail: "http://127.0.0.1:9/.well-known/openid-configuration is unreadable",
    })
  })
})

import type { AddressBook } from "@svc/domain/Addresses"
import { isDocument, normalised, readDocument, readRegistration } from "@svc/domain/oauth/Client"
import { hostOf, isAcceptable, matches, receiverOf } from "@svc/domain/oauth/Redirect"
import { isOurs } from "@svc/domain/oauth/Resource"
import { Result } from "effect"
import { describe, expect, it } from "vitest"

const book = {
  environment: "production",
  baseUrl: "https://id.example.org",
  profileBase: "https://people.example.org",
  tunnelDomain: "tunnel.example.org",
} as AddressBook

describe("Production", () => {
  it.each([
    ["https://claude.ai/api/mcp/auth_callback", true],
    ["http://localhost/callback", true],
    ["http://[::1]:1/", true],
    ["cursor://anysphere.cursor-mcp/oauth/callback", true],
    ["com.example.app:/callback", true],
    ["http://claude.ai/", false],
    ["https://id.example.org/auth/sign-in", false],
    ["https://people.example.org/@ada", false],
    ["https://ada.tunnel.example.org/cb", false],
    ["https://ada.TUNNEL.example.org.:8443/cb", false],
    ["https://tunnel.example.org.evil.example/cb", true],
    ["https://a b.example/", false],
    ["https://example.org/\u00e9", false],
    ["https:example.org/cb", false],
    ["https:///example.org/cb", false],
    ["https://app.example/".padEnd(2000, "x"), true],
    ["https://app.example/".padEnd(2001, "x"), false],
    ["https://app.example/cb#", false],
    ["https://app.example\\cb", false],
    ["https://user@app.example/cb", false],
    ["http://:secret@localhost/cb", false],
  ])("accepts %s as a redirect address: %s", (redirect, may) => expect(isAcceptable(book, redirect)).toBe(may))

  it.each([
    ["https://claude.ai/oauth/mcp-oauth-client-metadata", true],
    ["http://claude.ai/oauth/client", false],
    ["https://claude.ai/", false],
    ["https://claude.ai", false],
    ["https://claude.ai/a/../b", false],
    ["https://claude.ai/a#b", false],
    ["https://user@claude.ai/a", false],
    ["https://ada.tunnel.example.org/client.json", false],
    ["https://:secret@claude.ai/a", false],
    ["https://claude.ai/".padEnd(500, "x"), true],
    ["https://claude.ai/".padEnd(501, "x"), false],
  ])("accepts %s as the address of a client document: %s", (id, may) => expect(isDocument(book, id)).toBe(may))

  it.each([
    ["https://id.example.org", true],
    ["https://ID.example.org/", true],
    ["https://id.example.org/api/mcp/", true],
    ["https://id.example.org/api", false],
    ["https://id.example.org/api/mcp?x", false],
    ["https://id.example.org/#x", false],
    ["https://user@id.example.org/", false],
    ["https://id.example.org.evil.example/api/mcp", false],
    ["nonsense", false],
  ])("accepts %s as the resource: %s", (resource, ours) => expect(isOurs(book, resource)).toBe(ours))

  it("ignores the port for local programs only", () => {
    expect(matches("http://127.0.0.1:9/cb", ["https://app.example/cb", "http://127.0.0.1/cb"])).toBe(true)
    expect(matches("http://127.0.0.1:9/cb", ["http://localhost/cb"])).toBe(false)
    expect(matches("http://[::1]:9/cb", ["http://[::1]/cb?a"])).toBe(false)
    expect(matches("https://app.example:9/cb", ["https://app.example/cb"])).toBe(false)
    expect(matches("https://app.example/cb", ["https://app.example/cb"])).toBe(true)
  })
})

describe("A redirect", () => {
  it("to a Tunnel is rejected in any spelling of the configured domain", () => {
    const spelled = { ...book, tunnelDomain: "Tunnel.Example.org." }
    expect(isAcceptable(spelled, "https://ada.tunnel.example.org/cb")).toBe(false)
    expect(isAcceptable(spelled, "https://app.example/cb")).toBe(true)
  })

  it("to the service's own port of the local machine is rejected, and to other ports accepted", () => {
    const local = { ...book, environment: "development", baseUrl: "http://localhost:3000" } as AddressBook
    expect(isAcceptable(local, "http://localhost:3000/cb")).toBe(false)
    expect(isAcceptable(local, "http://localhost:3001/cb")).toBe(true)
    expect(isDocument(local, "http://localhost:4000/client.json")).toBe(true)
    expect(isDocument(local, "https://ada.tunnel.example.org/client.json")).toBe(true)
  })

  it.each([
    ["https://app.example:8443/cb", { _tag: "Site", host: "app.example:8443" }, "app.example:8443"],
    ["http://localhost/cb", { _tag: "Program", port: "80" }, "localhost"],
    ["http://127.0.0.1:9/cb", { _tag: "Program", port: "9" }, "127.0.0.1"],
    ["cursor://auth", { _tag: "App", scheme: "cursor:" }, "cursor:"],
  ])("%s names its receiver", (redirect, receiver, host) => {
    expect(receiverOf(redirect)).toEqual(receiver)
    expect(hostOf(redirect)).toBe(host)
  })
})

describe("The metadata of a client", () => {
  const cb = "https://app.example/cb"
  const many = (n: number) => Array.from({ length: n }, (_, at) => `${cb}/${at}`)
  // oxlint-disable-next-line typescript/no-explicit-any -- metadata of strangers
  type Any = any
  const codeOf = (result: ReturnType<typeof readDocument>) =>
    Result.isFailure(result) ? result.failure.error : result.success
  const registered = (more: Any = {}) =>
    codeOf(readRegistration(book, { redirect_uris: [cb], client_name: "App", ...more }))
  const id = "https://app.example/client.json"
  const document = (more: Any = {}) =>
    codeOf(readDocument(book, id, { client_id: id, redirect_uris: [cb], client_name: "App", ...more }))
  const app = { name: "App", redirects: [cb], idTokenAlgorithm: null }

  it.each<[Any, Any]>([
    [{}, app],
    [{ redirect_uris: many(20) }, { ...app, redirects: many(20) }],
    [{ grant_types: ["refresh_token", "authorization_code"], response_types: ["code", "token"] }, app],
    [{ scope: "openid mail:read" }, { ...app, idTokenAlgorithm: "RS256" }],
    [{ scope: "openidx mail:read" }, app],
    [{ id_token_signed_response_alg: "ES256" }, { ...app, idTokenAlgorithm: "ES256" }],
    [{ client_name: " A \n\u202eB " }, { ...app, name: "A B" }],
    [{ client_name: "\u{1f600}".repeat(60) }, { ...app, name: "\u{1f600}".repeat(60) }],
    [{ client_name: "\u{1f600}".repeat(61) }, { ...app, name: `${"\u{1f600}".repeat(59)}…` }],
    [{ redirect_uris: [] }, "invalid_redirect_uri"],
    [{ redirect_uris: undefined }, "invalid_redirect_uri"],
    [{ redirect_uris: cb }, "invalid_redirect_uri"],
    [{ redirect_uris: [cb, 7] }, "invalid_redirect_uri"],
    [{ redirect_uris: many(21) }, "invalid_redirect_uri"],
    [{ grant_types: ["client_credentials"] }, "invalid_client_metadata"],
    [{ response_types: ["token"] }, "invalid_client_metadata"],
    [{ response_types: "code" }, "invalid_client_metadata"],
    [{ id_token_signed_response_alg: "none" }, "invalid_client_metadata"],
  ])("is read from a registration and from a document alike: %j", (more, expected) => {
    expect(registered(more)).toEqual(expected)
    expect(document(more)).toEqual(expected)
  })

  it("has the host of a document, or `unnamed`, in place of a missing name", () => {
    for (const client_name of [undefined, 7, "", " \u202e"]) {
      expect(registered({ client_name })).toMatchObject({ name: "unnamed" })
      expect(document({ client_name })).toMatchObject({ name: "app.example" })
    }
  })

  it("of a registration has acceptable redirects only, and those of a document that are", () => {
    const mixed = { redirect_uris: [cb, "http://app.example/cb", cb] }
    expect(registered(mixed)).toBe("invalid_redirect_uri")
    expect(document(mixed)).toEqual({ ...app, redirects: [cb, cb] })
    expect(registered({ redirect_uris: [cb, cb] })).toEqual(app)
    expect(document({ redirect_uris: ["http://app.example/cb"] })).toBe("invalid_redirect_uri")
  })

  it.each<Any>([
    { client_id: "https://other.example/client.json" },
    { client_id: undefined },
    { client_secret: "s" },
    { client_secret_expires_at: 0 },
    { token_endpoint_auth_method: "client_secret_basic" },
    { token_endpoint_auth_methods_supported: ["private_key_jwt"], token_endpoint_auth_method: "none" },
  ])("of a document is refused with %j", (more) => expect(document(more)).toBe("invalid_client_metadata"))

  it("is an object, and a document names its own address", () => {
    expect(document({ token_endpoint_auth_methods_supported: ["private_key_jwt", "none"] })).toEqual(app)
    for (const said of [null, [], "x"]) {
      expect(codeOf(readDocument(book, id, said))).toBe("invalid_client_metadata")
      expect(codeOf(readRegistration(book, said))).toBe("invalid_client_metadata")
    }
  })

  it("is equal for equal registrations, whatever the port of a program and the order", () => {
    const key = (redirects: ReadonlyArray<string>, more: object = {}) => normalised({ ...app, redirects, ...more })
    expect(key(["http://localhost:1/cb", cb])).toBe(key([cb, "http://localhost:2/cb"]))
    expect(key(["http://localhost:1/cb"])).not.toBe(key(["http://localhost:1/other"]))
    expect(key([cb])).not.toBe(key(["https://app.example:9/cb"]))
    expect(key([cb])).not.toBe(key([cb], { name: "Other" }))
    expect(key([cb])).not.toBe(key([cb], { idTokenAlgorithm: "RS256" }))
  })
})

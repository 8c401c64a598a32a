import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sharedService, type TestService } from "../harness/Service.ts"
import {
  authorizationUrl,
  browser,
  challengeOf,
  registerClientId,
  obtainTokens,
  redirectOf,
  signedInUser,
  registerClient,
  verifierOf,
} from "./Consent.ts"
import { documents } from "./Documents.ts"

let service: TestService
let site: Awaited<ReturnType<typeof documents>>
let ada: Awaited<ReturnType<typeof signedInUser>>
beforeAll(async () => {
  service = await sharedService()
  site = await documents()
  ada = await signedInUser(service.base)
})
afterAll(async () => {
  await site.stop()
})

const challenge = challengeOf(verifierOf())
const here = "http://localhost:4711/callback"

describe("Redirect address", () => {
  it.each([
    ["http://example.org/cb"],
    ["https://user@example.org/cb"],
    ["https://example.org/cb#part"],
    ["http://localhost.evil.example/cb"],
    ["javascript:alert(1)"],
    ["data:text/html,x"],
    ["file:///etc/passwd"],
    ["myapp://callback"],
    ["https://ada.tunnel.localhost/cb"],
    ["https://ADA.TUNNEL.LOCALHOST./cb"],
    ["https://tunnel.localhost/cb"],
    ["https://localhost/cb"],
    ["https:\\\\example.org\\cb"],
    [`https://example.org/${"x".repeat(2000)}`],
  ])("%s is rejected at registration", async (redirect) => {
    const { status, body } = await registerClient(service.base, [redirect])
    expect([status, body["error"]]).toEqual([400, "invalid_redirect_uri"])
  })

  it("is limited to 20 per client", async () => {
    const many = Array.from({ length: 21 }, (_, n) => `https://example.org/${n}`)
    expect((await registerClient(service.base, many)).body["error"]).toBe("invalid_redirect_uri")
  })

  it("is short, since anybody may register", async () => {
    const of = (lengths: ReadonlyArray<number>) =>
      lengths.map((length, n) => `https://example.org/${n}`.padEnd(length, "x"))
    expect((await registerClient(service.base, of([1900, 1900, 1200]))).status).toBe(201)
    const { body } = await registerClient(service.base, of([1900, 1900, 1201]))
    expect(body).toMatchObject({
      error: "invalid_redirect_uri",
      error_description: expect.stringContaining("5000 characters"),
    })
  })

  it.each([
    ["https://app.example:8443/cb", "https://app.example/cb"],
    ["https://app.example/other", "https://app.example/cb"],
    ["https://app.example/cb?x=1", "https://app.example/cb"],
    ["https://evil.example/cb", "https://app.example/cb"],
    ["http://localhost:1234/other", "http://localhost:4711/callback"],
    ["http://127.0.0.1:4711/callback", "http://localhost:4711/callback"],
    ["http://localhost.evil.example:4711/callback", "http://localhost:4711/callback"],
  ])("%s does not match %s, and nothing is sent to it", async (requested, named) => {
    const client = await registerClientId(service.base, named)
    const shown = await ada.browser.go(authorizationUrl(service.base, { client, redirect: requested, challenge }))
    expect(shown.status).toBe(400)
    expect(shown.headers.get("location")).toBeNull()
    expect(shown.text).not.toContain("http-equiv")
    expect(shown.text).not.toContain("evil.example")
  })

  it("of a local program matches with any port", async () => {
    const client = await registerClientId(service.base, here)
    const { answer, back } = await obtainTokens(service.base, ada.browser, client, "http://localhost:58135/callback")
    expect([answer.status, back.host]).toEqual([200, "localhost:58135"])
  })
})

describe("Authorization request", () => {
  it.each([
    [{ response_type: "token" }, "unsupported_response_type"],
    [{ response_mode: "fragment" }, "invalid_request"],
    [{ code_challenge_method: "plain" }, "invalid_request"],
    [{ code_challenge: "short" }, "invalid_request"],
    [{ resource: "https://elsewhere.example/mcp" }, "invalid_target"],
    [{ prompt: "none" }, "consent_required"],
    [{ request: "eyJ" }, "request_not_supported"],
  ])("with %j returns %s with the state and the issuer", async (more, error) => {
    const client = await registerClientId(service.base, here)
    const answer = redirectOf(
      await ada.browser.go(authorizationUrl(service.base, { client, redirect: here, challenge, more })),
    )
    expect(Object.fromEntries(answer.searchParams)).toMatchObject({ error, state: "s-1", iss: service.base })
    expect(answer.searchParams.get("code")).toBeNull()
  })

  it("with an unknown client is shown to the user only", async () => {
    const shown = await ada.browser.go(authorizationUrl(service.base, { client: "oc_none", redirect: here, challenge }))
    expect([shown.status, shown.text.includes("http-equiv")]).toEqual([400, false])
  })

  it.each([
    ["%s", ""],
    ["%s/", ""],
    ["%s/api/mcp", ""],
    ["%s/api/mcp/", ""],
  ])("for the resource %s obtains a token for the tools", async (pattern) => {
    const client = await registerClientId(service.base, here)
    const resource = pattern.replace("%s", service.base.replace("localhost", "LOCALHOST"))
    const shown = await ada.browser.go(
      authorizationUrl(service.base, { client, redirect: here, challenge, more: { resource } }),
    )
    expect(shown.text).toContain('name="seal"')
  })
})

describe("Client document", () => {
  const shownFor = async (name: string, redirect = "http://localhost:5000/cb") =>
    ada.browser.go(authorizationUrl(service.base, { client: site.url(name), redirect, challenge }))
  const details = { client_name: "Doc", redirect_uris: ["http://localhost/cb"] }

  it.each([
    ["claude.json", "https://claude.ai/api/mcp/auth_callback"],
    ["claude-code.json", "http://localhost:58135/callback"],
    ["chatgpt.json", "https://chatgpt.com/connector/oauth/abc"],
    ["vscode.json", "http://127.0.0.1:1234/"],
    ["vscode.json", "https://vscode.dev/redirect"],
  ])("shaped as %s is accepted with %s", async (name, redirect) => {
    expect((await shownFor(name, redirect)).text).toContain('name="seal"')
  })

  it("cannot register a forbidden redirect address", async () => {
    expect((await shownFor("vscode.json", "http://evil.example/")).status).toBe(400)
  })

  it("is not fetched for anonymous users", async () => {
    const url = authorizationUrl(service.base, { client: site.url("stranger.json"), redirect: here, challenge })
    expect((await browser(service.base).go(url)).text).toContain("Sign in to connect an app")
    expect(site.asked).not.toContain("stranger.json")
  })

  it.each([
    [
      "redirects",
      (name: string) =>
        site.answer(name, (_, response) => response.writeHead(302, { location: site.url("claude.json") }).end()),
    ],
    [
      "is longer than 5 KiB",
      (name: string) => site.json(name, (client_id) => ({ client_id, ...details, x: "x".repeat(6000) })),
    ],
    ["names another id", (name: string) => site.json(name, () => ({ client_id: site.url("claude.json"), ...details }))],
    [
      "tells a secret",
      (name: string) => site.json(name, (client_id) => ({ client_id, ...details, client_secret: "s" })),
    ],
    [
      "is no JSON",
      (name: string) =>
        site.answer(name, (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>")),
    ],
    [
      "cannot do without authentication",
      (name: string) =>
        site.json(name, (client_id) => ({ client_id, ...details, token_endpoint_auth_method: "private_key_jwt" })),
    ],
  ])("%s is rejected", async (what, publish) => {
    const name = `${what.replaceAll(" ", "-")}.json`
    publish(name)
    const shown = await shownFor(name)
    expect([shown.status, shown.text.includes('name="seal"')]).toEqual([400, false])
  })

  it("is judged by its current version, or by the cached one if it has vanished", async () => {
    const stale = () =>
      service.query((sql) => sql`update oauth_client set fresh_until = now() where id = ${site.url("moving.json")}`)
    site.json("moving.json", (client_id) => ({ client_id, ...details }))
    expect((await shownFor("moving.json")).status).toBe(200)
    site.json("moving.json", (client_id) => ({ client_id, ...details, redirect_uris: ["http://localhost/new"] }))
    // Documents are cached for at least five minutes.
    expect((await shownFor("moving.json")).status).toBe(200)
    await stale()
    expect((await shownFor("moving.json")).status).toBe(400)
    expect((await shownFor("moving.json", "http://localhost:1/new")).status).toBe(200)
    site.answer("moving.json", (_, response) => response.writeHead(404).end())
    await stale()
    expect((await shownFor("moving.json", "http://localhost:1/new")).status).toBe(200)
    await service.query(
      (sql) =>
        sql`update oauth_client set fetched_at = now() - interval '8 days' where id = ${site.url("moving.json")}`,
    )
    expect((await shownFor("moving.json", "http://localhost:1/new")).status).toBe(400)
  })

  it("that forwards the access to another site causes a warning", async () => {
    expect((await shownFor("claude.json", "https://claude.ai/api/mcp/auth_callback")).text).toContain('class="warning"')
  })
})

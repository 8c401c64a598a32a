/** Attacks on OAuth beyond redirects, documents and replays. */
import { makeOAuthToken, type OAuthTokenKind } from "@svc/domain/account/Token"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import {
  authorizationUrl,
  browser,
  challengeOf,
  registerClientId,
  obtainTokens,
  mcp,
  redirectOf,
  signedInUser,
  tokenCall,
  verifierOf,
} from "./Consent.ts"

let service: TestService
let ada: Awaited<ReturnType<typeof signedInUser>>
beforeAll(async () => {
  service = await sharedService()
  ada = await signedInUser(service.base)
})

const here = "http://localhost:4711/callback"
const asking = (client: string, redirect = here, more: Record<string, string> = {}) =>
  authorizationUrl(service.base, { client, redirect, challenge: challengeOf(verifierOf()), more })
const connected = async (choice: Record<string, string | ReadonlyArray<string>> = {}) => {
  const client = await registerClientId(service.base, here)
  return { client, ...(await obtainTokens(service.base, ada.browser, client, here, choice)) }
}
const status = async (token: string) => (await mcp(service.base, token, "tools/list")).status

describe("Redirect address with an altered spelling", () => {
  it.each([
    "http://localhost@evil.example/callback",
    "http://localhost:4711@evil.example/callback",
    "http://localhost.:4711/callback",
    "http://0.0.0.0:4711/callback",
    "http://[::ffff:127.0.0.1]:4711/callback",
    "http://localhost%2eevil.example:4711/callback",
    "http://localhost:4711/callback/../other",
    "http://localhost:4711/callback%2f..%2fother",
    "http://localhost:4711//callback",
    "http://localhost:4711/Callback",
    "https://localhost:4711/callback",
    "http:localhost:4711/callback",
    "http:///localhost:4711/callback",
    "http://localhost:4711/callback\t",
  ])("%j does not match the registered one", async (redirect) => {
    const client = await registerClientId(service.base, here)
    const shown = await ada.browser.go(asking(client, redirect))
    expect([shown.status, shown.text.includes("http-equiv"), shown.text.includes('name="seal"')]).toEqual([
      400,
      false,
      false,
    ])
  })

  it("Request error is not redirected automatically, because anybody can register a site", async () => {
    const evil = "https://evil.example/landing"
    const client = await registerClientId(service.base, evil)
    for (const who of [ada.browser, browser(service.base)]) {
      for (const more of [{ response_type: "token" }, { prompt: "none" }, { code_challenge_method: "plain" }]) {
        const shown = await who.go(asking(client, evil, more as unknown as Record<string, string>))
        expect([shown.status, shown.headers.get("location"), shown.text.includes("http-equiv")]).toEqual([
          200,
          null,
          false,
        ])
        // The user sees the destination and may follow the link.
        expect(shown.text).toContain("<bdi>evil.example</bdi>")
        expect(shown.text).toContain('href="https://evil.example/landing?error=')
      }
    }
  })

  it("Markup in the state is escaped", async () => {
    const client = await registerClientId(service.base, here)
    const state = `"><script>alert(1)</script>`
    const answer = await ada.browser.decide(await ada.browser.go(asking(client, here, { state })), { decision: "deny" })
    expect(answer.text).not.toContain("<script")
    expect(redirectOf(answer).searchParams.get("state")).toBe(state)
  })
})

describe("Request without proof", () => {
  it.each([{ code_challenge: "" }, { code_challenge: "x".repeat(43), code_challenge_method: "" }])(
    "with PKCE parameters (%j) is rejected",
    async (more) => {
      const answer = redirectOf(
        await ada.browser.go(
          asking(await registerClientId(service.base, here), here, more as unknown as Record<string, string>),
        ),
      )
      expect(answer.searchParams.get("error")).toBe("invalid_request")
    },
  )

  it("cannot omit the verifier at the token endpoint", async () => {
    const client = await registerClientId(service.base, here)
    const back = await ada.browser.allow(asking(client))
    const form = {
      grant_type: "authorization_code",
      client_id: client,
      redirect_uri: here,
      code: back.searchParams.get("code")!,
    }
    expect((await tokenCall(service.base, form)).body["error"]).toBe("invalid_request")
    for (const code_verifier of ["", "x".repeat(43)]) {
      const { body } = await tokenCall(service.base, { ...form, code_verifier })
      expect(body["error"]).toMatch(/^invalid_(?:grant|request)$/)
    }
  })

  it("Link with a foreign request id shows no consent page", async () => {
    const stranger = browser(service.base)
    const response = await stranger.go(asking(await registerClientId(service.base, here)))
    const id = /continue=([0-9a-f-]{36})|name="request" value="([0-9a-f-]{36})"/.exec(response.text)
    const request = id?.[1] ?? id?.[2]
    expect(request).toBeDefined()
    const shown = await ada.browser.go(`/auth/authorize?continue=${request}`)
    expect([shown.status, shown.text.includes('name="seal"')]).toEqual([400, false])
  })
})

describe("Manipulated consent form", () => {
  const allow = { decision: "allow", agents: "one", rights: "read" }

  it("cannot name an Identity of another account", async () => {
    const eve = await signedInUser(service.base)
    const shown = await ada.browser.go(asking(await registerClientId(service.base, here)))
    const answer = await ada.browser.go("/auth/authorize", {
      form: { ...ada.browser.formOf(shown), ...allow, one: eve.identity.id },
    })
    expect([answer.status, answer.text.includes("http-equiv")]).toEqual([400, false])
  })

  it("cannot grant scopes that create other credentials", async () => {
    const { answer, access } = await connected({
      rights: "choose",
      scope: ["*", "identity:secret", "account:secret", "card:read", "card:fly"],
    })
    expect(answer.body["scope"]).toBe("card:read")
    const { body } = await mcp(service.base, access, "tools/list")
    expect(body["result"].tools.every(({ name }: { name: string }) => /whoami|card/.test(name))).toBe(true)
  })

  it("cannot exceed a year", async () => {
    const shown = await ada.browser.go(asking(await registerClientId(service.base, here)))
    const answer = await ada.browser.decide(shown, { ...allow, days: "3650" })
    expect(answer.text).not.toContain("http-equiv")
  })
})

describe("Token", () => {
  it("cannot be widened or moved to another resource by a refresh", async () => {
    const { client, refresh, answer } = await connected()
    const refreshing = (more: Record<string, string>) =>
      tokenCall(service.base, { grant_type: "refresh_token", client_id: client, refresh_token: refresh, ...more })
    const wider = await refreshing({ scope: "account:admin vault:secret *" })
    expect(wider.body["scope"]).toBe(answer.body["scope"])
    const write = await mcp(service.base, wider.body["access_token"], "tools/call", {
      name: "svc_card_update",
      arguments: { handle: ada.handle, description: "x" },
    })
    expect(write.body["result"].structuredContent.code).toBe("scope_missing")
    expect((await refreshing({ resource: "https://elsewhere.example/" })).body["error"]).toBe("invalid_target")
  })

  it("is accepted in the Authorization header only", async () => {
    const { access, refresh, exchange } = await connected()
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" })
    const post = (path: string, headers: Record<string, string>, text = body) =>
      fetch(`${service.base}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: text,
      }).then((answer) => answer.status)
    expect(await post(`/api/mcp?access_token=${access}`, {})).toBe(401)
    expect(await post("/api/mcp", { "x-api-key": access })).toBe(401)
    expect(await post("/api/mcp", { cookie: `svc_session=${access}` })).toBe(401)
    expect(await post("/api/mcp", { authorization: `Basic ${btoa(`x:${access}`)}` })).toBe(401)
    for (const other of [refresh, exchange.code]) expect(await status(other)).toBe(401)
    // A session cookie is not accepted from pages of other origins.
    expect(await post("/api/mcp", { cookie: `svc_session=${ada.session}` })).toBe(401)
    for (const path of ["/api/identities", "/api/auth/whoami", "/api/events/stream"]) {
      expect((await call(service.base, "GET", path, { token: access })).status, path).toBe(401)
    }
    const page = await browser(service.base, access).go("/auth/authorize")
    expect(page.text).not.toContain('name="seal"')
  })

  it("does not accept tokens that were never issued, and revoking them changes nothing", async () => {
    const { client, access, refresh, exchange } = await connected()
    const never = (kind: OAuthTokenKind) => makeOAuthToken(kind, new Uint8Array(32))
    const using = { grant_type: "refresh_token", client_id: client }
    const unknown = "The refresh token is unknown or has expired."
    const invalid = "The refresh token is invalid."
    for (const [form, description] of [
      [{ ...exchange, code: never("code") }, "The code is unknown or has expired."],
      [{ ...exchange, code: `${never("code")}x` }, "The code is invalid."],
      [{ ...exchange, code: refresh }, "The code is invalid."],
      [{ ...using, refresh_token: never("refresh") }, unknown],
      [{ ...using, refresh_token: access }, invalid],
      [{ ...using, refresh_token: exchange.code }, invalid],
    ] as const) {
      const { status, body } = await tokenCall(service.base, form)
      expect([status, body["error"], body["error_description"]]).toEqual([400, "invalid_grant", description])
    }
    const revoking = async (token: string) =>
      (await tokenCall(service.base, { token, client_id: client }, "/api/oauth/revoke")).status
    for (const token of [never("access"), never("refresh"), never("code"), exchange.code, "nonsense"])
      expect(await revoking(token)).toBe(200)
    expect(await status(access)).toBe(200)
    expect(await revoking(refresh)).toBe(200)
    expect(await status(access)).toBe(401)
  })

  it("can only be revoked by its own client", async () => {
    const { access, refresh } = await connected()
    const other = await registerClientId(service.base, "https://other.example/cb")
    for (const token of [access, refresh]) {
      expect((await tokenCall(service.base, { token, client_id: other }, "/api/oauth/revoke")).status).toBe(200)
      const stolen = { grant_type: "refresh_token", client_id: other, refresh_token: refresh }
      expect((await tokenCall(service.base, stolen)).body["error"]).toBe("invalid_grant")
    }
    expect(await status(access)).toBe(200)
  })
})

describe("App or key of one Identity", () => {
  it("cannot reach another by paths, multiple names or message lists", async () => {
    const bob = await makeIdentity(service.base, ada.session, newHandle("bob"))
    const put = (handle: string, value: string) =>
      call(service.base, "PUT", `/api/vault/secrets/own?identity=${handle}`, { token: ada.session, body: { value } })
    await put(ada.handle, "of-ada")
    await put(bob.handle, "of-bob")
    await call(service.base, "PATCH", `/api/identities/${bob.handle}/card`, {
      token: ada.session,
      body: { description: "only-bobs" },
    })
    const { access } = await connected({ rights: "choose", scope: ["card:read", "vault:read"], vault: "yes" })
    for (const token of [access, ada.secrets.identity_key as string]) {
      const outputs: Array<string> = []
      const tool = async (name: string, input: object) =>
        outputs.push(JSON.stringify((await mcp(service.base, token, "tools/call", { name, arguments: input })).body))
      for (const handle of [
        bob.handle,
        bob.handle.toUpperCase(),
        `${ada.handle}/../${bob.handle}`,
        `..%2f${bob.handle}`,
        `${bob.handle}?x=${ada.handle}`,
        `${bob.handle}#`,
        ` ${bob.handle}`,
        `@${bob.handle}`,
      ]) {
        await tool("svc_card_get", { handle })
        await tool("svc_vault_get", { name: "own", identity: handle })
      }
      await tool("svc_vault_get", { name: "own", identity: [ada.handle, bob.handle] })
      await tool("svc_vault_get", { name: `own/value?identity=${bob.handle}` })
      await tool("svc_vault_get", { name: "own", identity: ada.handle, handle: bob.handle })
      const batch = await fetch(`${service.base}/api/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
        body: JSON.stringify([
          {
            jsonrpc: "2.0",
            id: 1,
            method: "tools/call",
            params: { name: "svc_card_get", arguments: { handle: bob.handle } },
          },
        ]),
      })
      outputs.push(await batch.text())
      expect(batch.status).toBe(400)
      expect(outputs.join("\n")).not.toMatch(/of-bob|only-bobs/)
    }
    const own = ada.secrets.identity_key as string
    for (const query of [
      `identity=${ada.handle}&identity=${bob.handle}`,
      `identity=${bob.handle}&identity=${ada.handle}`,
      `identity[]=${bob.handle}`,
      `Identity=${bob.handle}`,
    ]) {
      const { body } = await call(service.base, "GET", `/api/vault/secrets/own/value?${query}`, { token: own })
      expect(JSON.stringify(body), query).not.toContain("of-bob")
    }
    // HEAD is authorized like GET.
    const head = await fetch(`${service.base}/api/identities/${bob.handle}/card`, {
      method: "HEAD",
      headers: { authorization: `Bearer ${own}` },
    })
    expect(head.status).toBe(403)
  })

  it("cannot forge its client address", async () => {
    const made = await call(service.base, "POST", "/api/keys", {
      token: ada.session,
      body: { name: "bound", networks: ["192.0.2.0/24"] },
    })
    const claims: ReadonlyArray<Record<string, string>> = [
      { "x-forwarded-for": "192.0.2.1" },
      { forwarded: "for=192.0.2.1" },
      { "x-real-ip": "192.0.2.1" },
      { "cf-connecting-ip": "192.0.2.1" },
      { "true-client-ip": "192.0.2.1" },
    ]
    for (const headers of claims) {
      const rest = await call(service.base, "GET", "/api/identities", { token: made.body.key, headers })
      expect(rest.body.code, JSON.stringify(headers)).toBe("network_refused")
      const answer = await fetch(`${service.base}/api/mcp`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${made.body.key}`, ...headers },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name: "svc_identity_list", arguments: {} },
        }),
      })
      expect(await answer.text()).toContain("network_refused")
    }
  })

  it("loses its grant with the Identity and gets none with a later one of the same name", async () => {
    const zed = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, zed.session, newHandle("zed"))
    await makeIdentity(service.base, zed.session, newHandle("rest"))
    const theirs = browser(service.base, zed.session)
    const client = await registerClientId(service.base, here)
    const { access } = await obtainTokens(service.base, theirs, client, here, { agents: "one" })
    const reads = async () =>
      (await mcp(service.base, access, "tools/call", { name: "svc_card_get", arguments: { handle } })).body
    const granted = (await call(service.base, "GET", "/api/grants", { token: zed.session })).body.grants[0].handles
    await call(service.base, "DELETE", `/api/identities/${granted[0]}`, { token: zed.session })
    for (let n = 0; n < 200 && (await status(access)) === 200; n++) await reads()
    expect(await status(access)).toBe(401)
  })
})

import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"
import { askingUrl, browser, challengeOf, letIn, mcp, onward, registered, tokenCall, verifierOf } from "./Consent.ts"
import { documents } from "./Documents.ts"

let service: TestService
let site: Awaited<ReturnType<typeof documents>>
let ada: Awaited<ReturnType<typeof person>>
beforeAll(async () => {
  service = await startService()
  site = await documents()
  ada = await person()
})
afterAll(async () => {
  await site.stop()
  await service.stop()
})

const person = async () => {
  const { session, email, org } = await signUp(service.base)
  const { handle } = await makeIdentity(service.base, session, newHandle("ada"))
  return { session, email, org, handle, browser: browser(service.base, session) }
}

const challenge = challengeOf(verifierOf())
const here = "http://localhost:4711/callback"
const clientOf = async (...redirects: ReadonlyArray<string>) =>
  (await registered(service.base, redirects, newHandle("client"))).body["client_id"] as string

const refreshing = (client: string, refresh_token: string, more: Record<string, string> = {}) =>
  tokenCall(service.base, { grant_type: "refresh_token", client_id: client, refresh_token, ...more })

/** Whether an access token is let in. */
const works = async (token: string) => (await mcp(service.base, token, "tools/list")).status === 200

describe("a redirect", () => {
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
  ])("of %s is not registered", async (redirect) => {
    const { status, body } = await registered(service.base, [redirect])
    expect([status, body["error"]]).toEqual([400, "invalid_redirect_uri"])
  })

  it("is one of 20 at most", async () => {
    const many = Array.from({ length: 21 }, (_, n) => `https://example.org/${n}`)
    expect((await registered(service.base, many)).body["error"]).toBe("invalid_redirect_uri")
  })

  it.each([
    ["https://app.example:8443/cb", "https://app.example/cb"],
    ["https://app.example/other", "https://app.example/cb"],
    ["https://app.example/cb?x=1", "https://app.example/cb"],
    ["https://evil.example/cb", "https://app.example/cb"],
    ["http://localhost:1234/other", "http://localhost:4711/callback"],
    ["http://127.0.0.1:4711/callback", "http://localhost:4711/callback"],
    ["http://localhost.evil.example:4711/callback", "http://localhost:4711/callback"],
  ])("of %s is not that of %s, and nothing is sent there", async (asked, named) => {
    const client = await clientOf(named)
    const shown = await ada.browser.go(askingUrl(service.base, { client, redirect: asked, challenge }))
    expect(shown.status).toBe(400)
    expect(shown.headers.get("location")).toBeNull()
    expect(shown.text).not.toContain("http-equiv")
    expect(shown.text).not.toContain("evil.example")
  })

  it("of a program is taken on any port", async () => {
    const client = await clientOf(here)
    const { answer, back } = await letIn(service.base, ada.browser, client, "http://localhost:58135/callback")
    expect([answer.status, back.host]).toEqual([200, "localhost:58135"])
  })
})

describe("a request", () => {
  it.each([
    [{ response_type: "token" }, "unsupported_response_type"],
    [{ response_mode: "fragment" }, "invalid_request"],
    [{ code_challenge_method: "plain" }, "invalid_request"],
    [{ code_challenge: "short" }, "invalid_request"],
    [{ resource: "https://elsewhere.example/mcp" }, "invalid_target"],
    [{ prompt: "none" }, "consent_required"],
    [{ request: "eyJ" }, "request_not_supported"],
  ])("with %j goes back with %s, its state and our name", async (more, error) => {
    const client = await clientOf(here)
    const answer = onward(await ada.browser.go(askingUrl(service.base, { client, redirect: here, challenge, more })))
    expect(Object.fromEntries(answer.searchParams)).toMatchObject({ error, state: "s-1", iss: service.base })
    expect(answer.searchParams.get("code")).toBeNull()
  })

  it("is of no client that we do not know", async () => {
    const shown = await ada.browser.go(askingUrl(service.base, { client: "oc_none", redirect: here, challenge }))
    expect([shown.status, shown.text.includes("http-equiv")]).toEqual([400, false])
  })

  it.each([
    ["%s", ""],
    ["%s/", ""],
    ["%s/api/mcp", ""],
    ["%s/api/mcp/", ""],
  ])("for the resource %s is for the tools", async (pattern) => {
    const client = await clientOf(here)
    const resource = pattern.replace("%s", service.base.replace("localhost", "LOCALHOST"))
    const shown = await ada.browser.go(
      askingUrl(service.base, { client, redirect: here, challenge, more: { resource } }),
    )
    expect(shown.text).toContain('name="seal"')
  })
})

describe("a code", () => {
  const granted = async () => {
    const client = await clientOf(here)
    const verifier = verifierOf()
    const back = await ada.browser.allow(
      askingUrl(service.base, { client, redirect: here, challenge: challengeOf(verifier) }),
    )
    const code = back.searchParams.get("code")!
    return {
      client,
      form: { grant_type: "authorization_code", client_id: client, redirect_uri: here, code, code_verifier: verifier },
    }
  }

  it.each([
    ["with another verifier", () => ({ code_verifier: verifierOf() })],
    ["for another redirect", () => ({ redirect_uri: "http://localhost:4712/callback" })],
    ["by another client", async () => ({ client_id: await clientOf("https://other.example/cb") })],
    ["for another resource", () => ({ resource: "https://elsewhere.example" })],
  ])("is not taken %s, and then still is as it was meant", async (_, change) => {
    const { form } = await granted()
    const refused = await tokenCall(service.base, { ...form, ...(await change()) })
    expect(refused.status).toBe(400)
    expect(["invalid_grant", "invalid_target"]).toContain(refused.body["error"])
    expect(refused.headers.get("cache-control")).toBe("no-store")
    expect((await tokenCall(service.base, form)).status).toBe(200)
  })

  it("that is used twice ends what the first use got", async () => {
    const { form } = await granted()
    const first = await tokenCall(service.base, form)
    expect(await works(first.body["access_token"])).toBe(true)
    expect((await tokenCall(service.base, form)).body["error"]).toBe("invalid_grant")
    expect(await works(first.body["access_token"])).toBe(false)
    expect((await refreshing(form.client_id, first.body["refresh_token"])).body["error"]).toBe("invalid_grant")
    const events = await call(service.base, "GET", "/api/events?type=grant.revoked", { token: ada.session })
    expect(events.body.events[0].data.reason).toBe("code_reuse")
  })

  it("whose answer was lost is asked for anew, and leaves one Grant", async () => {
    const bob = await person()
    const client = await clientOf(here)
    // The process died behind the commit: the client has nothing, tries the code again, and begins anew.
    const lost = await letIn(service.base, bob.browser, client, here)
    expect((await tokenCall(service.base, lost.exchange)).body["error"]).toBe("invalid_grant")
    const anew = await letIn(service.base, bob.browser, client, here)
    expect(await works(anew.access)).toBe(true)
    const { body } = await call(service.base, "GET", "/api/grants", { token: bob.session })
    expect(body.grants.length).toBe(1)
  })

  it("that is used twice at once gives one pair at most", async () => {
    const { form } = await granted()
    const answers = await Promise.all(Array.from({ length: 6 }, () => tokenCall(service.base, form)))
    expect(answers.filter(({ status }) => status === 200).length).toBe(1)
  })

  it("is good for a minute", async () => {
    const { form } = await granted()
    await service.query(
      (sql) =>
        sql`update oauth_token set expires_at = expires_at - interval '60 seconds' where kind = 'code' and first_used_at is null`,
    )
    expect((await tokenCall(service.base, form)).body["error"]).toBe("invalid_grant")
  })

  it("names no client that is unknown: it registers anew", async () => {
    const { form } = await granted()
    const answer = await tokenCall(service.base, { ...form, client_id: "oc_gone" })
    expect([answer.status, answer.body["error"]]).toEqual([401, "invalid_client"])
  })
})

describe("a refresh token", () => {
  const pair = async () => {
    const client = await clientOf(here)
    return { client, ...(await letIn(service.base, ada.browser, client, here)) }
  }
  /** The minute that parallel programs have is over. */
  const later = () =>
    service.query(
      (sql) =>
        sql`update oauth_token set first_used_at = first_used_at - interval '61 seconds' where first_used_at is not null`,
    )

  it("is taken again after an answer that was lost", async () => {
    const { client, refresh } = await pair()
    expect((await refreshing(client, refresh)).status).toBe(200)
    await later()
    const again = await refreshing(client, refresh)
    expect(again.status).toBe(200)
    expect(await works(again.body["access_token"])).toBe(true)
  })

  it("is taken from parallel programs, whatever they do with theirs", async () => {
    const { client, refresh } = await pair()
    const pairs = await Promise.all(Array.from({ length: 5 }, () => refreshing(client, refresh)))
    expect(pairs.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    for (const { body } of pairs) expect(await works(body["access_token"])).toBe(true)
    for (const { body } of pairs) expect((await refreshing(client, body["refresh_token"])).status).toBe(200)
  })

  it("that comes again after its successor was used ends the access, and its holder hears of it", async () => {
    const { client, refresh } = await pair()
    const next = await refreshing(client, refresh)
    expect((await refreshing(client, next.body["refresh_token"])).status).toBe(200)
    await later()
    expect((await refreshing(client, refresh)).body["error"]).toBe("invalid_grant")
    expect(await works(next.body["access_token"])).toBe(false)
    const events = await call(service.base, "GET", "/api/events?type=grant.revoked", { token: ada.session })
    expect(events.body.events[0].data.reason).toBe("refresh_reuse")
  })

  it("that comes again after the access token of its answer was used ends the access", async () => {
    const { client, refresh } = await pair()
    const next = await refreshing(client, refresh)
    expect(await works(next.body["access_token"])).toBe(true)
    // The first use is noted behind the answer.
    const noted = () =>
      service.query<{ n: number }>(
        (sql) => sql`
        select count(*)::int as n from oauth_token where kind = 'access' and first_used_at is not null
          and grant_id = (select grant_id from oauth_token where kind = 'access' order by expires_at desc limit 1)`,
      )
    while ((await noted())[0]!.n === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    await later()
    expect((await refreshing(client, refresh)).body["error"]).toBe("invalid_grant")
    expect(await works(next.body["access_token"])).toBe(false)
  })

  it("is given five pairs at most", async () => {
    const { client, refresh } = await pair()
    for (let n = 0; n < 5; n++) expect((await refreshing(client, refresh)).status).toBe(200)
    expect((await refreshing(client, refresh)).body["error"]).toBe("invalid_grant")
  })

  it("is not taken from another client", async () => {
    const { client, refresh } = await pair()
    const other = await clientOf("https://other.example/cb")
    expect((await refreshing(other, refresh)).body["error"]).toBe("invalid_grant")
    expect((await refreshing(client, refresh)).status).toBe(200)
  })

  it("is for no other resource", async () => {
    const { client, refresh } = await pair()
    expect((await refreshing(client, refresh, { resource: "https://elsewhere.example" })).body["error"]).toBe(
      "invalid_target",
    )
  })

  it("ends the access when its client revokes it", async () => {
    const { client, refresh, access } = await pair()
    const other = await clientOf("https://other.example/cb")
    await tokenCall(service.base, { token: refresh, client_id: other }, "/api/oauth/revoke")
    expect(await works(access)).toBe(true)
    await tokenCall(service.base, { token: refresh, client_id: client }, "/api/oauth/revoke")
    expect(await works(access)).toBe(false)
  })
})

describe("an access token", () => {
  it("is good for the tools and nothing else", async () => {
    const { access } = await letIn(service.base, ada.browser, await clientOf(here), here)
    expect(await works(access)).toBe(true)
    for (const path of [
      "/api/auth/whoami",
      "/api/identities",
      `/api/identities/${ada.handle}/messages`,
      "/api/events/stream",
    ]) {
      expect((await call(service.base, "GET", path, { token: access })).status).toBe(401)
    }
    const cookie = browser(service.base, access)
    expect((await cookie.go("/auth/device")).text).toContain("Sign in")
    expect((await cookie.go("/api/auth/whoami", { headers: { "sec-fetch-site": "same-origin" } })).status).toBe(401)
  })

  it("is for the Identities and the scopes that were granted", async () => {
    const other = await makeIdentity(service.base, ada.session, newHandle("bob"))
    const { access } = await letIn(service.base, ada.browser, await clientOf(here), here)
    const tool = async (name: string, input: object) =>
      (await mcp(service.base, access, "tools/call", { name, arguments: input })).body["result"]
    expect((await tool("svc_identity_get", { handle: ada.handle })).isError).toBeUndefined()
    expect((await tool("svc_identity_get", { handle: other.handle })).structuredContent.code).toBe(
      "identity_not_granted",
    )
    const sent = await tool("svc_email_send", { handle: ada.handle, to: ["a@example.org"], subject: "x", text: "y" })
    expect(sent.structuredContent).toMatchObject({ code: "scope_missing" })
  })

  it("is challenged where it is missing, and told where it is no good", async () => {
    const bare = await mcp(service.base, undefined, "tools/list")
    const metadata = `resource_metadata="${service.base}/.well-known/oauth-protected-resource/api/mcp"`
    expect([bare.status, bare.headers.get("www-authenticate")]).toEqual([
      401,
      `Bearer ${metadata}, scope="identity:read mail:read card:read"`,
    ])
    const bad = await mcp(service.base, "svc_oat_nonsense", "tools/list")
    expect(bad.headers.get("www-authenticate")).toContain('error="invalid_token"')
  })
})

describe("the consent", () => {
  const asked = async () => {
    const client = await clientOf(here)
    return ada.browser.go(askingUrl(service.base, { client, redirect: here, challenge }))
  }
  const allow = { decision: "allow", agents: "one", rights: "read" }

  it.each([
    ["no Origin", { origin: "" }],
    ["a foreign Origin", { origin: "https://evil.example" }],
    ["no Origin of anybody", { origin: "null" }],
    ["our Origin from another site", { "sec-fetch-site": "cross-site" }],
  ])("is not taken with %s", async (_, headers) => {
    const shown = await asked()
    expect((await ada.browser.decide(shown, allow, headers)).status).toBe(403)
    expect(onward(await ada.browser.decide(shown, allow)).searchParams.get("code")).not.toBeNull()
  })

  it("is not taken from another session", async () => {
    const shown = await asked()
    const bob = await person()
    const answer = await bob.browser.decide(shown, allow)
    expect([answer.status, answer.text.includes("http-equiv")]).toEqual([400, false])
  })

  it("is decided once", async () => {
    const shown = await asked()
    onward(await ada.browser.decide(shown, allow))
    expect((await ada.browser.decide(shown, allow)).text).not.toContain("http-equiv")
  })

  it("is shown in no frame and beside no window", async () => {
    const { headers, text } = await asked()
    expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'")
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin")
    expect(text).not.toContain("<script")
  })

  it("is asked of nobody by a key", async () => {
    const key = await call(service.base, "POST", "/api/keys", { token: ada.session, body: { name: "k" } })
    const shown = await browser(service.base, key.body.key).go(
      askingUrl(service.base, { client: await clientOf(here), redirect: here, challenge }),
    )
    expect(shown.text).not.toContain('name="seal"')
  })

  it("says no where it was denied", async () => {
    const answer = onward(await ada.browser.decide(await asked(), { decision: "deny" }))
    expect(Object.fromEntries(answer.searchParams)).toMatchObject({ error: "access_denied", iss: service.base })
  })

  it("has nothing chosen that is dangerous, even if it was asked for", async () => {
    const client = await clientOf(here)
    const more = { scope: "vault:secret account:admin mail:send" }
    const { text } = await ada.browser.go(askingUrl(service.base, { client, redirect: here, challenge, more }))
    const checked = [...text.matchAll(/name="([a-z]+)" value="([^"]*)" checked/g)].map(
      ([, name, value]) => `${name} ${value}`,
    )
    expect(checked).toEqual(["agents one", "rights read", "days 90"])
  })

  it("shows a name as text, without what turns or hides it", async () => {
    const { body } = await registered(service.base, [here], `<b>\u202eClaude\u200b</b>\u0007${"x".repeat(100)}`)
    const { text } = await ada.browser.go(
      askingUrl(service.base, { client: body["client_id"], redirect: here, challenge }),
    )
    expect(text).toContain("&lt;b&gt;Claude&lt;/b&gt;x")
    for (const hidden of ["<b>", "\u202e", "\u200b", "\u0007", "x".repeat(60)]) expect(text).not.toContain(hidden)
  })

  it("of a repeat replaces what was allowed, and makes no second Grant", async () => {
    const bob = await person()
    const client = await clientOf(here)
    const first = await letIn(service.base, bob.browser, client, here)
    const shown = await bob.browser.go(askingUrl(service.base, { client, redirect: here, challenge }))
    expect(shown.text).toContain("identity:read")
    expect(first.answer.body["scope"]).not.toContain("mail:send")
    const second = await letIn(service.base, bob.browser, client, "http://localhost:9999/callback", { rights: "act" })
    expect(second.answer.body["scope"]).toContain("mail:send")
    const { body } = await call(service.base, "GET", "/api/grants", { token: bob.session })
    expect(body.grants.length).toBe(1)
  })
})

describe("a document", () => {
  const shownFor = async (name: string, redirect = "http://localhost:5000/cb") =>
    ada.browser.go(askingUrl(service.base, { client: site.url(name), redirect, challenge }))
  const details = { client_name: "Doc", redirect_uris: ["http://localhost/cb"] }

  it.each([
    ["claude.json", "https://claude.ai/api/mcp/auth_callback"],
    ["claude-code.json", "http://localhost:58135/callback"],
    ["chatgpt.json", "https://chatgpt.com/connector/oauth/abc"],
    ["vscode.json", "http://127.0.0.1:1234/"],
    ["vscode.json", "https://vscode.dev/redirect"],
  ])("shaped as %s is taken, with %s", async (name, redirect) => {
    expect((await shownFor(name, redirect)).text).toContain('name="seal"')
  })

  it("cannot bring in a redirect that nobody may have", async () => {
    expect((await shownFor("vscode.json", "http://evil.example/")).status).toBe(400)
  })

  it("is not fetched for somebody who is not signed in", async () => {
    const url = askingUrl(service.base, { client: site.url("stranger.json"), redirect: here, challenge })
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
  ])("that %s is not taken", async (what, publish) => {
    const name = `${what.replaceAll(" ", "-")}.json`
    publish(name)
    const shown = await shownFor(name)
    expect([shown.status, shown.text.includes('name="seal"')]).toEqual([400, false])
  })

  it("that changed is judged as it is now, and one that vanished as it was", async () => {
    const stale = () =>
      service.query((sql) => sql`update oauth_client set fresh_until = now() where id = ${site.url("moving.json")}`)
    site.json("moving.json", (client_id) => ({ client_id, ...details }))
    expect((await shownFor("moving.json")).status).toBe(200)
    site.json("moving.json", (client_id) => ({ client_id, ...details, redirect_uris: ["http://localhost/new"] }))
    // Fresh for five minutes at least.
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

  it("of one site that sends the access to another is said aloud", async () => {
    expect((await shownFor("claude.json", "https://claude.ai/api/mcp/auth_callback")).text).toContain('class="warning"')
  })
})

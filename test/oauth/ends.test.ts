import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import {
  authorizationUrl,
  browser,
  challengeOf,
  obtainTokens,
  mcp,
  registerClient,
  tokenCall,
  verifierOf,
} from "./Consent.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

const here = "http://localhost:4711/callback"

const connected = async (choice: Record<string, string | ReadonlyArray<string>> = {}) => {
  const { session, org } = await signUp(service.base)
  const { handle } = await makeIdentity(service.base, session, newHandle("ada"))
  const person = browser(service.base, session)
  const client = (await registerClient(service.base, [here], newHandle("client"))).body["client_id"] as string
  const granted = await obtainTokens(service.base, person, client, here, choice)
  const { body } = await call(service.base, "GET", "/api/grants", { token: session })
  return { session, org, handle, person, client, ...granted, grant: body.grants[0] }
}

const status = async (token: string) => (await mcp(service.base, token, "tools/list")).status
const tool = async (token: string, name: string, input: object = {}) =>
  (await mcp(service.base, token, "tools/call", { name, arguments: input })).body["result"].structuredContent

describe("Grant", () => {
  it("is listed with its app, whose token reports it", async () => {
    const { session, handle, access, grant } = await connected()
    expect(grant).toMatchObject({ redirect_host: "localhost", handles: [handle], last_used_at: null })
    const { caller } = await tool(access, "svc_whoami")
    expect(caller).toMatchObject({ kind: "grant", grant_id: grant.id, handles: [handle] })
    const used = await eventually(
      () => call(service.base, "GET", `/api/grants/${grant.id}`, { token: session }),
      ({ body }) => body.last_used_at !== null,
    )
    expect(used.body.last_used_address).toMatch(/127\.0\.0\.1|::1/)
    const { body } = await mcp(service.base, access, "initialize", { protocolVersion: "2025-11-25" })
    expect(body["result"].instructions).toContain(`You act as @${handle}`)
    expect(body["result"].instructions).toContain("You may read only")
  })

  it("can be widened and narrowed, effective with the next call", async () => {
    const { session, handle, access, grant } = await connected()
    const path = `/api/grants/${grant.id}`
    const refused = await tool(access, "svc_card_update", { handle, description: "Counts." })
    expect(refused).toMatchObject({ code: "scope_missing", widen_url: `${service.base}/console/keys/${grant.id}` })
    const wider = await call(service.base, "PATCH", path, {
      token: session,
      body: { scopes: ["identity:read", "card:write"] },
    })
    expect([wider.status, wider.body.scopes]).toEqual([200, ["identity:read", "card:write"]])
    expect(await tool(access, "svc_card_update", { handle, description: "Counts." })).not.toHaveProperty("code")
    expect(await tool(access, "svc_email_list", { handle })).toMatchObject({ code: "scope_missing" })
  })

  it("issues no token that outlasts it", async () => {
    const { session, client, refresh, grant } = await connected()
    const body = { expires_at: new Date(Date.now() + 300_000).toISOString() }
    await call(service.base, "PATCH", `/api/grants/${grant.id}`, { token: session, body })
    const form = { grant_type: "refresh_token", refresh_token: refresh, client_id: client }
    const answer = await tokenCall(service.base, form)
    expect(answer.status).toBe(200)
    expect(answer.body["expires_in"]).toBeLessThanOrEqual(300)
  })

  it("keeps its networks when the app is authorized again", async () => {
    const { session, access, grant, person, client } = await connected()
    const path = `/api/grants/${grant.id}`
    const bind = (networks: unknown) => call(service.base, "PATCH", path, { token: session, body: { networks } })
    expect(grant.networks).toBeNull()
    expect((await bind(["192.0.2.7/24"])).body.networks).toEqual(["192.0.2.0/24"])
    expect((await bind(["nowhere"])).body.code).toBe("invalid_request")
    expect((await bind([])).body.code).toBe("invalid_request")
    const refused = await mcp(service.base, access, "tools/list")
    expect([refused.status, refused.body["code"]]).toEqual([403, "network_refused"])
    expect(await tool(access, "svc_whoami")).toMatchObject({ code: "network_refused" })
    const repeated = await obtainTokens(service.base, person, client, here)
    expect(await status(repeated.access)).toBe(403)
    expect((await bind(["127.0.0.0/8", "::1"])).body.networks).toEqual(["127.0.0.0/8", "::1"])
    expect((await tool(access, "svc_whoami")).caller).toMatchObject({ networks: ["127.0.0.0/8", "::1"] })
    expect((await bind(null)).body.networks).toBeNull()
    expect(await status(access)).toBe(200)
  })

  it("of another account is not found and remains unchanged", async () => {
    const { session, grant } = await connected()
    const path = `/api/grants/${grant.id}`
    const other = await signUp(service.base)
    const patch = { token: other.session, body: { scopes: ["vault:read"], networks: ["192.0.2.0/24"] } }
    expect((await call(service.base, "PATCH", path, patch)).status).toBe(404)
    expect((await call(service.base, "GET", path, { token: session })).body).toEqual(grant)
  })

  it("can only be changed by a session, and only to existing Identities and scopes", async () => {
    const { session, grant } = await connected()
    const path = `/api/grants/${grant.id}`
    const key = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "k" } })
    const patch = (token: string, body: object) => call(service.base, "PATCH", path, { token, body })
    const revoke = (token: string, tag: string) =>
      call(service.base, "DELETE", path, { token, headers: { "if-match": tag } })
    expect((await patch(key.body.key, { scopes: ["mail:read"] })).body.code).toBe("session_required")
    expect((await patch(session, { scopes: ["mail:everything"] })).body.code).toBe("scope_unknown")
    expect((await patch(session, { scopes: ["*"] })).body.code).toBe("scope_unknown")
    expect((await patch(session, { scopes: ["identity:secret"] })).body.code).toBe("scope_unknown")
    const inYear = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    for (const [body, path] of [
      [{ scopes: [] }, "/scopes"],
      [{ expires_at: "2020-01-01T00:00:00.000Z" }, "/expires_at"],
      [{ expires_at: inYear(367) }, "/expires_at"],
    ] as const)
      expect((await patch(session, body)).body).toMatchObject({ code: "invalid_request", errors: [{ path }] })
    const twice = { scopes: ["mail:read", "mail:read"], expires_at: inYear(365) }
    expect((await patch(session, twice)).body).toMatchObject({ scopes: ["mail:read"] })
    expect((await revoke(session, '"other"')).body.code).toBe("precondition_failed")
    expect((await patch(session, { handles: ["nobody-here"] })).body.code).toBe("not_found")
    const other = await makeIdentity(service.base, (await signUp(service.base)).session)
    expect((await patch(session, { handles: [other.handle] })).body.code).toBe("not_found")
  })

  it("ends immediately when it is revoked", async () => {
    const { session, access, refresh, client, grant } = await connected()
    expect(await status(access)).toBe(200)
    expect((await call(service.base, "DELETE", `/api/grants/${grant.id}`, { token: session })).status).toBe(204)
    const refused = await mcp(service.base, access, "tools/list")
    expect([refused.status, refused.body["code"]]).toEqual([401, "grant_revoked"])
    expect(refused.headers.get("www-authenticate")).toContain("resource_metadata=")
    const repeated = await tokenCall(service.base, {
      grant_type: "refresh_token",
      client_id: client,
      refresh_token: refresh,
    })
    expect([repeated.status, repeated.body["error"]]).toEqual([400, "invalid_grant"])
    // Revoking again changes nothing; a Grant of another account is not found.
    expect((await call(service.base, "DELETE", `/api/grants/${grant.id}`, { token: session })).status).toBe(204)
    const other = await signUp(service.base)
    expect((await call(service.base, "DELETE", `/api/grants/${grant.id}`, { token: other.session })).status).toBe(404)
  })

  it("that is revoked ends a waiting call", async () => {
    const { session, handle, access, grant } = await connected()
    let isOver = false
    const waiting = mcp(service.base, access, "tools/call", {
      name: "svc_email_wait",
      arguments: { handle, seconds: 60 },
    }).finally(() => (isOver = true))
    await eventually(
      () => call(service.base, "GET", `/api/grants/${grant.id}`, { token: session }),
      ({ body }) => body.last_used_at !== null,
    )
    expect(isOver).toBe(false)
    await call(service.base, "DELETE", `/api/grants/${grant.id}`, { token: session })
    // The call ends long before its wait of a minute.
    await waiting
  })

  /** Starts a call that waits for mail, and returns once it is waiting. */
  const waitingCall = async ({ session, handle, access, grant }: Awaited<ReturnType<typeof connected>>) => {
    const answer = mcp(service.base, access, "tools/call", {
      name: "svc_email_wait",
      arguments: { handle, seconds: 60 },
    })
    await eventually(
      () => call(service.base, "GET", `/api/grants/${grant.id}`, { token: session }),
      ({ body }) => body.last_used_at !== null,
    )
    return answer.then(({ body }) => body["result"].structuredContent)
  }

  it("delivers new mail to a waiting call", async () => {
    const one = await connected()
    const answer = waitingCall(one)
    // The wait starts after the latest message.
    let isOver = false
    void answer.finally(() => (isOver = true))
    await eventually(
      async () => {
        await send(service.smtpPort, {
          from: "grace@example.org",
          to: `${one.handle}@mail.localhost`,
          subject: "Waited for",
          text: "Here.",
        })
        return isOver
      },
      (over) => over,
    )
    expect((await answer).messages[0]).toMatchObject({ subject: "Waited for" })
  })

  it("ends a waiting call when it loses the Identity or the mail scope", async () => {
    for (const taken of ["handles", "scopes"] as const) {
      const one = await connected()
      const other = await makeIdentity(service.base, one.session, newHandle("bob"))
      const answer = waitingCall(one)
      await eventually(
        () => call(service.base, "GET", `/api/grants/${one.grant.id}`, { token: one.session }),
        ({ body }) => body.last_used_at !== null,
      )
      await call(service.base, "PATCH", `/api/grants/${one.grant.id}`, {
        token: one.session,
        body: taken === "handles" ? { handles: [other.handle] } : { scopes: ["card:read"] },
      })
      expect((await answer).code).toBe(taken === "handles" ? "identity_not_granted" : "scope_missing")
    }
  })

  it("is only revoked together with all sessions if that is requested", async () => {
    const keeps = await connected()
    await call(service.base, "DELETE", "/api/auth/sessions", { token: keeps.session })
    expect(await status(keeps.access)).toBe(200)
    const ends = await connected()
    await call(service.base, "DELETE", "/api/auth/sessions?apps=end", { token: ends.session })
    expect(await status(ends.access)).toBe(401)
  })

  it("ends with its last Identity", async () => {
    const { session, handle, access } = await connected()
    await call(service.base, "DELETE", `/api/identities/${handle}`, { token: session })
    await eventually(
      () => status(access),
      (found) => found === 401,
    )
    const { body } = await eventually(
      () => call(service.base, "GET", "/api/events?type=grant.revoked", { token: session }),
      ({ body }) => body.events.length > 0,
    )
    expect(body.events[0].data.reason).toBe("account")
  })

  it("only lists granted Identities and loses a deleted one", async () => {
    const { session, person, client, handle, grant } = await connected()
    const [bob, eve] = [
      await makeIdentity(service.base, session, newHandle("bob")),
      await makeIdentity(service.base, session, newHandle("eve")),
    ]
    const { access } = await obtainTokens(service.base, person, client, here, { agents: "all" })
    const handles = async () =>
      (await tool(access, "svc_identity_list")).identities.map((one: { handle: string }) => one.handle).sort()
    expect(await handles()).toEqual([handle, bob.handle, eve.handle].sort())
    await call(service.base, "PATCH", `/api/grants/${grant.id}`, {
      token: session,
      body: { handles: [handle, bob.handle] },
    })
    expect(await handles()).toEqual([handle, bob.handle].sort())
    await call(service.base, "DELETE", `/api/identities/${bob.handle}`, { token: session })
    await eventually(handles, (left) => left.length === 1)
    // The Grant no longer lists the Identity.
    const [row] = await service.query<{ n: number }>(
      (sql) => sql`select cardinality(identities)::int as n from client_grant where id = ${grant.id}`,
    )
    expect(row!.n).toBe(1)
  })

  it("ends with its account", async () => {
    const { session, org, access } = await connected()
    await call(service.base, "POST", "/api/account/deletion", { token: session, body: { confirm: org.email } })
    expect(await status(access)).toBe(401)
  })

  it("is audited under the app's name: calls, refusals and attempts after its end", async () => {
    const { session, handle, access, grant } = await connected({ rights: "act" })
    const actor = { kind: "grant", id: grant.id, client: grant.client_name }
    const of = async (requestId: string | null) => {
      const { body } = await call(service.base, "GET", "/api/audit?limit=200", { token: session })
      return body.records.filter((one: { request_id: string }) => one.request_id === requestId)
    }
    const update = { name: "svc_card_update", arguments: { handle, description: "By an app." } }
    const done = await mcp(service.base, access, "tools/call", update)
    expect(await of(done.headers.get("request-id"))).toMatchObject([
      {
        action: "cards.patch",
        outcome: "allowed",
        actor,
        identity: handle,
        source: { via: "mcp", tool: "svc_card_update" },
      },
    ])
    const elsewhere = await call(service.base, "GET", "/api/identities", { token: access })
    expect(await of(elsewhere.headers.get("request-id"))).toMatchObject([
      { class: "auth", outcome: "refused", code: "unauthenticated", actor, source: { via: "rest" } },
    ])
    await call(service.base, "DELETE", `/api/grants/${grant.id}`, { token: session })
    const over = await mcp(service.base, access, "tools/list")
    const refusal = { class: "auth", action: "mcp.exchange", outcome: "refused", code: "grant_revoked", actor }
    expect(await of(over.headers.get("request-id"))).toMatchObject([{ ...refusal, source: { via: "mcp" } }])
  })

  it("sends a notice and is audited when it is created", async () => {
    const { session, grant, client } = await connected()
    const { body } = await eventually(
      () => call(service.base, "GET", "/api/events?type=grant.created", { token: session }),
      ({ body }) => body.events.length > 0,
    )
    expect(body.events[0].data).toMatchObject({ grant_id: grant.id, client_id: client, redirect_host: "localhost" })
    const log = await call(service.base, "GET", "/api/audit?class=auth&limit=50", { token: session })
    const actions = log.body.records.map((one: { action: string }) => one.action)
    expect(actions).toEqual(expect.arrayContaining(["oauth.consent", "oauth.token"]))
    const token = log.body.records.find((one: { action: string }) => one.action === "oauth.token")
    expect(token.actor).toEqual({ kind: "grant", id: grant.id, name: null, client: grant.client_name })
  })
})

describe("Sign-in during an authorization", () => {
  const link = (text: string) => /href="([^"]*\/auth\/magic-link[^"]*)"/.exec(text)![1]!.replaceAll("&amp;", "&")

  const asking = async (email: string) => {
    const client = (await registerClient(service.base, [here], newHandle("client"))).body["client_id"] as string
    const stranger = browser(service.base)
    const url = authorizationUrl(service.base, { client, redirect: here, challenge: challengeOf(verifierOf()) })
    const response = await stranger.go(url)
    expect(response.headers.getSetCookie()[0]).toMatch(/svc_authorize=.*HttpOnly/i)
    const request = /name="request" value="([^"]*)"/.exec(response.text)![1]!
    const mailed = await stranger.go("/auth/sign-in", { form: { email, terms: "yes", request } })
    const to = new URL(link(mailed.text))
    const form = Object.fromEntries(to.searchParams)
    return { stranger, form }
  }

  it("continues the request in the browser that started it", async () => {
    const { stranger, form } = await asking(`on-${Date.now()}@example.org`)
    const opened = await stranger.go("/auth/magic-link", { form })
    expect(opened.status).toBe(303)
    expect((await stranger.go(opened.headers.get("location")!)).text).toContain('name="seal"')
  })

  it("signs in and points back to the app in any other browser", async () => {
    const { form } = await asking(`else-${Date.now()}@example.org`)
    const reader = browser(service.base)
    const opened = await reader.go("/auth/magic-link", { form })
    expect([opened.status, opened.text.includes("Return to your app")]).toEqual([200, true])
    expect(reader.jar.has("svc_session")).toBe(true)
    expect((await reader.go(`/auth/authorize?continue=${form["request"]}`)).text).not.toContain('name="seal"')
  })
})

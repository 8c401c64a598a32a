/** Confusion attacks: foreign host names, tokens of another kind, mixed authentication, and replayed decisions. */
import { request as httpRequest } from "node:http"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
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
let ada: Awaited<ReturnType<typeof person>>
beforeAll(async () => {
  service = await sharedService()
  ada = await person()
})

const person = async () => {
  const { session } = await signUp(service.base)
  const { handle } = await makeIdentity(service.base, session, newHandle("ada"))
  return { session, handle, browser: browser(service.base, session) }
}
const here = "http://localhost:4711/callback"
const clientOf = async (redirect = here) =>
  (await registerClient(service.base, [redirect], newHandle("client"))).body["client_id"] as string
const allow = { decision: "allow", agents: "one", rights: "read" }
const grants = async (token: string) =>
  (await call(service.base, "GET", "/api/grants", { token })).body.grants as ReadonlyArray<{ id: string }>
/** An unused code, and the parameters to redeem it. */
const aCode = async () => {
  const client = await clientOf()
  const verifier = verifierOf()
  const url = authorizationUrl(service.base, { client, redirect: here, challenge: challengeOf(verifier) })
  const code = (await ada.browser.allow(url)).searchParams.get("code")!
  const form = {
    grant_type: "authorization_code",
    client_id: client,
    redirect_uri: here,
    code,
    code_verifier: verifier,
  }
  return { client, form }
}

/** Sends a request whose headers `fetch` would not allow. */
const raw = (path: string, headers: Record<string, string>, method = "GET") =>
  new Promise<{ status: number; headers: Record<string, string | ReadonlyArray<string> | undefined>; text: string }>(
    (resolve, reject) => {
      const { hostname, port } = new URL(service.base)
      httpRequest({ hostname, port, path, method, headers }, (answer) => {
        const parts: Array<Buffer> = []
        answer.on("data", (part: Buffer) => parts.push(part))
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(parts).toString() }),
        )
      })
        .on("error", reject)
        .end()
    },
  )

describe("Claimed host name", () => {
  it.each([
    { host: "evil.example" },
    { "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
    { forwarded: "host=evil.example;proto=https" },
  ])("(%j) appears in no metadata, challenge or link", async (headers) => {
    for (const path of [
      "/.well-known/oauth-protected-resource",
      "/.well-known/oauth-protected-resource/api/mcp",
      "/.well-known/oauth-authorization-server",
      "/auth/authorize",
    ]) {
      const answer = await raw(path, headers)
      expect(JSON.stringify([answer.headers, answer.text])).not.toContain("evil.example")
    }
    const challenged = await raw("/api/mcp", { ...headers, "content-type": "application/json" }, "POST")
    expect(challenged.status).toBe(401)
    expect(challenged.headers["www-authenticate"]).toContain(service.base)
  })
})

describe("Token type", () => {
  it("is enforced: codes, access tokens and refresh tokens are not interchangeable", async () => {
    const client = await clientOf()
    const { access, refresh } = await obtainTokens(service.base, ada.browser, client, here)
    const { form } = await aCode()
    const refreshing = (refresh_token: string, client_id = client) =>
      tokenCall(service.base, { grant_type: "refresh_token", client_id, refresh_token })
    for (const token of [access, form.code]) {
      expect((await refreshing(token)).body["error"]).toBe("invalid_grant")
      expect((await refreshing(token, form.client_id)).body["error"]).toBe("invalid_grant")
    }
    for (const code of [access, refresh]) {
      expect((await tokenCall(service.base, { ...form, code })).body["error"]).toBe("invalid_grant")
    }
    for (const token of [refresh, form.code]) expect((await mcp(service.base, token, "tools/list")).status).toBe(401)
    // The valid tokens still work.
    expect((await mcp(service.base, access, "tools/list")).status).toBe(200)
    expect((await refreshing(refresh)).status).toBe(200)
    expect((await tokenCall(service.base, form)).status).toBe(200)
  })

  it("grants no other endpoint, whatever headers the request has", async () => {
    const { access } = await obtainTokens(service.base, ada.browser, await clientOf(), here)
    const guises: ReadonlyArray<Record<string, string>> = [
      { authorization: `Bearer ${access}` },
      { authorization: `Bearer ${access}`, "mcp-protocol-version": "2025-11-25", "x-via": "mcp", origin: service.base },
      { cookie: `svc_session=${access}`, "x-svc-console": "1" },
      { cookie: `svc_session=${access}`, "svc-console": "1", origin: service.base },
    ]
    const paths = [
      "/api/auth/whoami",
      "/api/events/stream",
      `/api/identities/${ada.handle}/messages/wait`,
      "/api/grants",
    ]
    for (const headers of guises) {
      for (const path of paths) expect([path, (await raw(path, headers)).status]).toEqual([path, 401])
    }
    const asApp = browser(service.base, access)
    const url = authorizationUrl(service.base, {
      client: await clientOf(),
      redirect: here,
      challenge: challengeOf(verifierOf()),
    })
    expect((await asApp.go(url)).text).not.toContain('name="seal"')
  })
})

describe("Token endpoint", () => {
  it("lets pages of other origins call it without cookies, and keeps them from the consent page and the tools", async () => {
    const origin = "https://evil.example"
    const open = ["/api/oauth/token", "/api/oauth/register", "/api/oauth/revoke"]
    for (const path of [...open, "/auth/authorize", "/api/mcp"]) {
      const response = await raw(
        path,
        { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization" },
        "OPTIONS",
      )
      const names = Object.keys(response.headers).filter((name) => name.startsWith("access-control-"))
      expect([path, names.length > 0]).toEqual([path, open.includes(path)])
      expect(names).not.toContain("access-control-allow-credentials")
    }
    const { form } = await aCode()
    const sent = await fetch(`${service.base}/api/oauth/token`, {
      method: "POST",
      headers: { origin },
      body: new URLSearchParams(form),
    })
    expect(sent.headers.get("access-control-allow-credentials")).toBeNull()
    expect(sent.headers.get("cache-control")).toBe("no-store")
  })

  it("reads only the body, rejects repeated members, and consumes no code on errors", async () => {
    const { form } = await aCode()
    const query = new URLSearchParams(form).toString()
    expect((await raw(`/api/oauth/token?${query}`, {})).status).toBe(405)
    const inQuery = await tokenCall(service.base, { grant_type: "authorization_code" }, `/api/oauth/token?${query}`)
    expect(inQuery.body["error"]).toBe("invalid_client")
    const twice = await fetch(`${service.base}/api/oauth/token`, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: `${query}&code_verifier=${verifierOf()}`,
    })
    expect([twice.status, await twice.json()]).toMatchObject([400, { error: "invalid_request" }])
    const json = await fetch(`${service.base}/api/oauth/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(form),
    })
    expect(json.status).toBe(400)
    const basic = await fetch(`${service.base}/api/oauth/token`, {
      method: "POST",
      headers: { authorization: `Basic ${Buffer.from(`${form.client_id}:x`).toString("base64")}` },
      body: new URLSearchParams({ ...form, client_id: await clientOf() }),
    })
    // The body identifies the client; a header that names another app makes the request invalid.
    expect(((await basic.json()) as { error: string }).error).toBe("invalid_grant")
    const { status } = await tokenCall(service.base, form)
    expect(status).toBe(200)
  })
})

describe("Decision", () => {
  const shownTo = async (who: typeof ada) =>
    who.browser.go(
      authorizationUrl(service.base, {
        client: await clientOf(),
        redirect: here,
        challenge: challengeOf(verifierOf()),
      }),
    )

  it("sent several times concurrently is applied once", async () => {
    const shown = await shownTo(ada)
    const before = (await grants(ada.session)).length
    const answers = await Promise.all(Array.from({ length: 6 }, () => ada.browser.decide(shown, allow)))
    expect(answers.filter(({ text }) => text.includes("code=")).length).toBe(1)
    expect((await grants(ada.session)).length).toBe(before + 1)
  })

  it("of an ended session is rejected", async () => {
    const eve = await person()
    const shown = await shownTo(eve)
    const { body: link } = await call(service.base, "POST", "/api/auth/magic-link", {
      body: { email: (await call(service.base, "GET", "/api/auth/whoami", { token: eve.session })).body.org.email },
    })
    const token = new URL(link.dev_magic_link).searchParams.get("token")
    const repeated = (await call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })).body
    expect((await call(service.base, "DELETE", "/api/auth/session", { token: eve.session })).status).toBe(204)
    const answer = await eve.browser.decide(shown, allow)
    expect(answer.text).not.toContain("code=")
    // A decision of another session of the same user is rejected too.
    eve.browser.jar.set("svc_session", repeated.session_token)
    expect((await eve.browser.decide(shown, allow)).text).not.toContain("code=")
    expect(await grants(repeated.session_token)).toEqual([])
  })

  it("is not offered for an overlong link", async () => {
    const url = authorizationUrl(service.base, {
      client: await clientOf(),
      redirect: here,
      challenge: challengeOf(verifierOf()),
      more: { state: "s".repeat(8_192) },
    })
    const answer = await ada.browser.go(url)
    expect([answer.status, answer.text.includes("http-equiv"), answer.text.includes('name="seal"')]).toEqual([
      400,
      false,
      false,
    ])
  })

  it("without an Identity grants nothing", async () => {
    const shown = await shownTo(ada)
    const answer = await ada.browser.decide(shown, { ...allow, agents: "some", some: [] })
    expect(answer.text).not.toContain("code=")
  })
})

describe("Registration", () => {
  it.each([
    ["no object", "[]"],
    ["an object of the language", `{"__proto__": {"redirect_uris": ["${here}"]}}`],
    ["redirects that are none", `{"redirect_uris": [{"toString": "${here}"}]}`],
    ["nesting without end", `{"redirect_uris": ${"[".repeat(20_000)}${"]".repeat(20_000)}}`],
    ["two names of one member", `{"redirect_uris": ["${here}"], "redirect_uris": ["javascript:alert(1)"]}`],
  ])("with %s is rejected", async (_, body) => {
    const answer = await fetch(`${service.base}/api/oauth/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    })
    expect(answer.status).toBe(400)
  })

  it("of a megabyte is not read", async () => {
    const { status } = await call(service.base, "POST", "/api/oauth/register", {
      body: { redirect_uris: [here], client_name: "n".repeat(1_000_000) },
    })
    expect(status).toBe(413)
  })
})

describe("Network limit of a Grant", () => {
  it("is applied to its tokens once the account holder sets it", async () => {
    const eve = await person()
    await obtainTokens(service.base, eve.browser, await clientOf(), here)
    const [grant] = await grants(eve.session)
    const networks = ["192.0.2.0/24", "2001:db8::/32"]
    const changed = await call(service.base, "PATCH", `/api/grants/${grant!.id}`, {
      token: eve.session,
      body: { networks },
    })
    expect(changed.body.networks).toEqual(networks)
    const eventsOfType = async (type: string) =>
      (await call(service.base, "GET", `/api/events?type=${type}`, { token: eve.session })).body.events
    await expect.poll(() => eventsOfType("grant.changed")).toMatchObject([{ data: { networks } }])
    expect(await eventsOfType("grant.created")).toMatchObject([{ data: { networks: null } }])
  })
})

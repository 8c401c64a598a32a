import { sha256 } from "@svc/cluster/credentials/CredentialMint"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import {
  authorizationUrl,
  browser,
  challengeOf,
  registerClientId,
  obtainTokens,
  mcp,
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

const refreshing = (client: string, refresh_token: string, more: Record<string, string> = {}) =>
  tokenCall(service.base, { grant_type: "refresh_token", client_id: client, refresh_token, ...more })

/** Returns whether an access token is accepted. */
const works = async (token: string) => (await mcp(service.base, token, "tools/list")).status === 200

describe("Code", () => {
  const granted = async () => {
    const client = await registerClientId(service.base, here)
    const verifier = verifierOf()
    const back = await ada.browser.allow(
      authorizationUrl(service.base, { client, redirect: here, challenge: challengeOf(verifier) }),
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
    [
      "by another client",
      async () => ({ client_id: await registerClientId(service.base, "https://other.example/cb") }),
    ],
    ["for another resource", () => ({ resource: "https://elsewhere.example" })],
  ])("is rejected %s, and remains valid for its purpose", async (_, change) => {
    const { form } = await granted()
    const refused = await tokenCall(service.base, { ...form, ...(await change()) })
    expect(refused.status).toBe(400)
    expect(["invalid_grant", "invalid_target"]).toContain(refused.body["error"])
    expect(refused.headers.get("cache-control")).toBe("no-store")
    expect((await tokenCall(service.base, form)).status).toBe(200)
  })

  it("that is used twice revokes the tokens of the first use", async () => {
    const { form } = await granted()
    const first = await tokenCall(service.base, form)
    expect(await works(first.body["access_token"])).toBe(true)
    expect((await tokenCall(service.base, form)).body["error"]).toBe("invalid_grant")
    expect(await works(first.body["access_token"])).toBe(false)
    expect((await refreshing(form.client_id, first.body["refresh_token"])).body["error"]).toBe("invalid_grant")
    const events = await call(service.base, "GET", "/api/events?type=grant.revoked", { token: ada.session })
    expect(events.body.events[0].data.reason).toBe("code_reuse")
  })

  it("whose response was lost is requested again and leaves one Grant", async () => {
    const bob = await signedInUser(service.base)
    const client = await registerClientId(service.base, here)
    // The process died after the commit: the client has no tokens, retries the code and starts again.
    const lost = await obtainTokens(service.base, bob.browser, client, here)
    expect((await tokenCall(service.base, lost.exchange)).body["error"]).toBe("invalid_grant")
    const anew = await obtainTokens(service.base, bob.browser, client, here)
    expect(await works(anew.access)).toBe(true)
    const { body } = await call(service.base, "GET", "/api/grants", { token: bob.session })
    expect(body.grants.length).toBe(1)
  })

  it("that is used twice concurrently issues one pair at most", async () => {
    const { form } = await granted()
    const answers = await Promise.all(Array.from({ length: 6 }, () => tokenCall(service.base, form)))
    expect(answers.filter(({ status }) => status === 200).length).toBe(1)
  })

  it("expires after a minute", async () => {
    const { form } = await granted()
    await service.query(
      (sql) =>
        sql`update oauth_token set expires_at = expires_at - interval '60 seconds' where kind = 'code' and first_used_at is null`,
    )
    expect((await tokenCall(service.base, form)).body["error"]).toBe("invalid_grant")
  })

  it("of a deleted client makes the client register again", async () => {
    const { form } = await granted()
    const answer = await tokenCall(service.base, { ...form, client_id: "oc_gone" })
    expect([answer.status, answer.body["error"]]).toEqual([401, "invalid_client"])
  })
})

describe("Refresh token", () => {
  const pair = async () => {
    const client = await registerClientId(service.base, here)
    return { client, ...(await obtainTokens(service.base, ada.browser, client, here)) }
  }
  /** The window for parallel programs has passed. */
  const later = () =>
    service.query(
      (sql) =>
        sql`update oauth_token set first_used_at = first_used_at - interval '61 seconds' where first_used_at is not null`,
    )

  it("is accepted again after a lost response", async () => {
    const { client, refresh } = await pair()
    expect((await refreshing(client, refresh)).status).toBe(200)
    await later()
    const repeated = await refreshing(client, refresh)
    expect(repeated.status).toBe(200)
    expect(await works(repeated.body["access_token"])).toBe(true)
  })

  it("can be used by parallel programs", async () => {
    const { client, refresh } = await pair()
    const pairs = await Promise.all(Array.from({ length: 5 }, () => refreshing(client, refresh)))
    expect(pairs.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    for (const { body } of pairs) expect(await works(body["access_token"])).toBe(true)
    for (const { body } of pairs) expect((await refreshing(client, body["refresh_token"])).status).toBe(200)
  })

  it("that is reused after its successor was used revokes the access and notifies the holder", async () => {
    const { client, refresh } = await pair()
    const next = await refreshing(client, refresh)
    expect((await refreshing(client, next.body["refresh_token"])).status).toBe(200)
    await later()
    expect((await refreshing(client, refresh)).body["error"]).toBe("invalid_grant")
    expect(await works(next.body["access_token"])).toBe(false)
    const events = await call(service.base, "GET", "/api/events?type=grant.revoked", { token: ada.session })
    expect(events.body.events[0].data.reason).toBe("refresh_reuse")
  })

  it("that is reused after its access token was used revokes the access", async () => {
    const { client, refresh } = await pair()
    const next = await refreshing(client, refresh)
    expect(await works(next.body["access_token"])).toBe(true)
    // The first use is stored after the response.
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

  it.each([
    [
      "that has expired",
      (refresh: string) =>
        service.query((sql) => sql`update oauth_token set expires_at = now() where hash = ${sha256(refresh)}`),
    ],
    [
      "of a Grant whose time is over",
      (refresh: string) =>
        service.query(
          (sql) => sql`update client_grant set expires_at = now()
            where id = (select grant_id from oauth_token where hash = ${sha256(refresh)})`,
        ),
    ],
    [
      "of an account that is being deleted",
      (refresh: string) =>
        service.query(
          (sql) => sql`update org set status = 'deleting' where id = (
            select g.org_id from oauth_token t join client_grant g on g.id = t.grant_id where t.hash = ${sha256(refresh)})`,
        ),
    ],
  ])("%s is invalid", async (_, end) => {
    const bob = await signedInUser(service.base)
    const client = await registerClientId(service.base, here)
    const { refresh } = await obtainTokens(service.base, bob.browser, client, here)
    const next = await refreshing(client, refresh)
    expect(next.status).toBe(200)
    await end(next.body["refresh_token"])
    expect((await refreshing(client, next.body["refresh_token"])).body["error"]).toBe("invalid_grant")
  })

  it("issues five pairs within a minute and rejects further uses without ending the Grant", async () => {
    const { client, refresh } = await pair()
    const answers = await Promise.all(Array.from({ length: 8 }, () => refreshing(client, refresh)))
    const given = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status !== 200)
    expect([given.length, refused.length]).toEqual([5, 3])
    for (const { body } of refused) expect(body["error"]).toBe("invalid_grant")
    for (const { body } of given) expect(await works(body["access_token"])).toBe(true)
    expect((await refreshing(client, given[0]!.body["refresh_token"])).status).toBe(200)
  })

  it("that is used a sixth time after the minute ends the Grant", async () => {
    const { client, refresh } = await pair()
    const first = await refreshing(client, refresh)
    for (let n = 1; n < 5; n++) await refreshing(client, refresh)
    await later()
    expect((await refreshing(client, refresh)).body["error"]).toBe("invalid_grant")
    expect(await works(first.body["access_token"])).toBe(false)
  })

  it("is rejected from another client", async () => {
    const { client, refresh } = await pair()
    const other = await registerClientId(service.base, "https://other.example/cb")
    expect((await refreshing(other, refresh)).body["error"]).toBe("invalid_grant")
    expect((await refreshing(client, refresh)).status).toBe(200)
  })

  it("is bound to its resource", async () => {
    const { client, refresh } = await pair()
    expect((await refreshing(client, refresh, { resource: "https://elsewhere.example" })).body["error"]).toBe(
      "invalid_target",
    )
  })

  it("revokes the access when its client revokes it", async () => {
    const { client, refresh, access } = await pair()
    const other = await registerClientId(service.base, "https://other.example/cb")
    await tokenCall(service.base, { token: refresh, client_id: other }, "/api/oauth/revoke")
    expect(await works(access)).toBe(true)
    await tokenCall(service.base, { token: refresh, client_id: client }, "/api/oauth/revoke")
    expect(await works(access)).toBe(false)
  })
})

describe("Access token", () => {
  it("is valid for the tools only", async () => {
    const { access } = await obtainTokens(service.base, ada.browser, await registerClientId(service.base, here), here)
    expect(await works(access)).toBe(true)
    for (const path of [
      "/api/auth/whoami",
      "/api/identities",
      `/api/identities/${ada.handle}/messages`,
      "/api/events/stream",
    ]) {
      const { status, body } = await call(service.base, "GET", path, { token: access })
      expect([status, body.detail], path).toEqual([401, "This credential is for the MCP server only."])
    }
    const cookie = browser(service.base, access)
    expect((await cookie.go("/auth/device")).text).toContain("Sign in")
    expect((await cookie.go("/api/auth/whoami", { headers: { "sec-fetch-site": "same-origin" } })).status).toBe(401)
  })

  it("is limited to the granted Identities and scopes", async () => {
    const other = await makeIdentity(service.base, ada.session, newHandle("bob"))
    const { access } = await obtainTokens(service.base, ada.browser, await registerClientId(service.base, here), here)
    const tool = async (name: string, input: object) =>
      (await mcp(service.base, access, "tools/call", { name, arguments: input })).body["result"]
    expect((await tool("svc_identity_get", { handle: ada.handle })).isError).toBeUndefined()
    expect((await tool("svc_identity_get", { handle: other.handle })).structuredContent.code).toBe(
      "identity_not_granted",
    )
    const sent = await tool("svc_email_send", { handle: ada.handle, to: ["a@example.org"], subject: "x", text: "y" })
    expect(sent.structuredContent).toMatchObject({ code: "scope_missing" })
  })

  it("causes a challenge that reports an error only if a token was sent", async () => {
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

describe("A request to an endpoint of OAuth", () => {
  const form = "application/x-www-form-urlencoded"
  const json = "application/json"
  const notUtf8 = Buffer.from([0x61, 0x3d, 0xff])
  /** `CLIENT` is a registered client. */
  const cases: ReadonlyArray<
    readonly [path: string, type: string, body: string | Buffer, status: number, error: string]
  > = [
    ["token", json, "{}", 400, "invalid_request"],
    ["token", form, "client_id=a&client_id=b", 400, "invalid_request"],
    ["token", form, "client_id=a%00", 400, "invalid_request"],
    ["token", form, notUtf8, 400, "invalid_request"],
    ["token", form, "", 401, "invalid_client"],
    ["token", form, "client_id=&grant_type=refresh_token", 401, "invalid_client"],
    ["token", form, "client_id=oc_nobody&grant_type=refresh_token", 401, "invalid_client"],
    ["token", form, "client_id=CLIENT&resource=https%3A%2F%2Fother.example%2F", 400, "invalid_target"],
    ["token", form, "client_id=CLIENT", 400, "unsupported_grant_type"],
    ["token", form, "client_id=CLIENT&grant_type=password", 400, "unsupported_grant_type"],
    ["token", form, "client_id=CLIENT&grant_type=refresh_token", 400, "invalid_request"],
    ["token", form, "client_id=CLIENT&grant_type=refresh_token&refresh_token=x", 400, "invalid_grant"],
    ...["code", "redirect_uri", "code_verifier"].map((missing) => {
      const given = ["code", "redirect_uri", "code_verifier"].filter((name) => name !== missing)
      const body = `client_id=CLIENT&grant_type=authorization_code&${given.map((name) => `${name}=x`).join("&")}`
      return ["token", form, body, 400, "invalid_request"] as const
    }),
    ["revoke", json, "{}", 400, "invalid_request"],
    ["revoke", form, "token=x", 400, "invalid_request"],
    ["revoke", form, "client_id=CLIENT", 400, "invalid_request"],
    ["register", form, '{"redirect_uris":["https://app.example/"]}', 400, "invalid_client_metadata"],
    ["register", json, "{", 400, "invalid_client_metadata"],
    ["register", json, notUtf8, 400, "invalid_client_metadata"],
    ["register", json, "[]", 400, "invalid_client_metadata"],
    ["register", json, '{"redirect_uris":["http://x.example"]}', 400, "invalid_redirect_uri"],
  ]
  it("that is not valid is refused with the code of the standard, and never cached", async () => {
    const client = await registerClientId(service.base, here)
    for (const [path, type, body, status, error] of cases) {
      const answer = await fetch(`${service.base}/api/oauth/${path}`, {
        method: "POST",
        headers: { "content-type": type },
        body: typeof body === "string" ? body.replace("CLIENT", client) : new Uint8Array(body),
      })
      const said = (await answer.json()) as { error: string; error_description: string }
      expect([path, String(body), answer.status, said.error]).toEqual([path, String(body), status, error])
      expect(said.error_description).toMatch(/\.$/)
      expect(answer.headers.get("cache-control")).toBe("no-store")
    }
  })

  it("for the claims of a sign-in says whether a token was sent", async () => {
    const challenge = async (headers: Record<string, string>) => {
      const answer = await fetch(`${service.base}/api/oauth/userinfo`, { headers })
      return [answer.status, answer.headers.get("www-authenticate")]
    }
    expect(await challenge({})).toEqual([401, "Bearer"])
    expect(await challenge({ authorization: "Bearer x" })).toEqual([401, 'Bearer error="invalid_token"'])
  })
})

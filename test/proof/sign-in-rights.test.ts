/** Who signs in where: allowed sites, approvals, attacks, and the page and the command for it. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { decodeProtectedHeader } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually } from "../harness/Service.ts"
import { insertSignIn } from "../harness/SignIns.ts"
import { runHere } from "../harness/Commands.ts"
import { authorizationUrl, challengeOf, registerClient, tokenCall, verifierOf } from "../oauth/Consent.ts"
import { open, startRelyingParty } from "./RelyingParty.ts"
import { type SignInAccount, startSignInAccount } from "./SignInAccount.ts"

let stop = async () => {}
let { service, site, session, handle, key, id, path, allow, post, started } = {} as SignInAccount
beforeAll(async () => {
  ;({ service, site, session, handle, key, id, path, allow, post, started, stop } = await startSignInAccount())
})
afterAll(() => stop())

describe("an approval", () => {
  const elsewhere = () => allow([])
  afterAll(() => allow([site.site]))

  it("is needed for a site that is not allowed, and is good for one sign-in", async () => {
    await elsewhere()
    const url = await site.login()
    const first = await post(url)
    expect(first.status).toBe(201)
    expect(first.body).toMatchObject({ status: "awaiting_approval", redirect_url: null, site: site.site })
    // Posting again asks nobody again.
    expect((await post(await site.login())).body.id).toBe(first.body.id)
    const decide = (token: string, what = "approve") =>
      call(service.base, "POST", `${path()}/${first.body.id}/${what}`, { token })
    expect((await decide(key)).body.code).toBe("admin_required")
    expect((await decide(session)).body).toMatchObject({ status: "approved" })
    expect((await decide(session)).body.code).toBe("conflict")
    const again = await post(url)
    expect(again.body).toMatchObject({ status: "started", id: first.body.id })
    expect((await open(again.body.redirect_url)).claims!.sub).toBe(`agent:${id}`)
    expect((await post(await site.login())).body.status).toBe("awaiting_approval")
  })

  it("covers no further scopes, and a refused sign-in stays refused", async () => {
    await elsewhere()
    const { body: client } = await registerClient(service.base, [`${site.base}/callback`], "Grows")
    const url = (scope: string) =>
      authorizationUrl(service.base, {
        client: client["client_id"],
        redirect: `${site.base}/callback`,
        challenge: challengeOf(verifierOf()),
        more: { scope },
      })
    const narrow = (await post(url("openid"))).body
    await call(service.base, "POST", `${path()}/${narrow.id}/approve`, { token: session })
    const wide = (await post(url("openid email"))).body
    expect(wide.status).toBe("awaiting_approval")
    const refused = await call(service.base, "POST", `${path()}/${wide.id}/refuse`, { token: session })
    expect(refused.body.status).toBe("refused")
    expect((await post(url("openid email"))).body.id).not.toBe(wide.id)
  })

  it("is awaited by at most 20 sign-ins of an Identity", async () => {
    await elsewhere()
    const { body: client } = await registerClient(service.base, [`${site.base}/callback`], "Late")
    const url = authorizationUrl(service.base, {
      client: client["client_id"],
      redirect: `${site.base}/callback`,
      challenge: challengeOf(verifierOf()),
      more: { scope: "openid" },
    })
    const awaiting = await service.query(
      (sql) =>
        sql`select from agent_sign_in where identity_id = ${id} and status = 'awaiting_approval' and expires_at > now()`,
    )
    await service.query((sql) => insertSignIn(sql, handle, { count: 20 - awaiting.length }))
    await service.query((sql) => insertSignIn(sql, handle, { expires: "-1 day" }))
    expect((await post(url)).body).toMatchObject({ code: "conflict", detail: expect.stringMatching(/^20 sign-ins /) })
    const remove = (atMost: number) =>
      service.query(
        (sql) => sql`delete from agent_sign_in where id in (
          select id from agent_sign_in where site = 'shop.example' and expires_at > now() limit ${atMost})`,
      )
    await remove(1)
    expect((await post(url)).body.status).toBe("awaiting_approval")
    await service.query((sql) => sql`delete from agent_sign_in where identity_id = ${id}`)
  })

  it("gives a client that names no algorithm an ID token by RS256", async () => {
    await elsewhere()
    const redirect_uri = `${site.base}/callback`
    const { body: client } = await registerClient(service.base, [redirect_uri], "Plain")
    const [client_id, code_verifier] = [client["client_id"] as string, verifierOf()]
    const more = { scope: "openid" }
    const url = { client: client_id, redirect: redirect_uri, challenge: challengeOf(code_verifier), more }
    const { body } = await post(authorizationUrl(service.base, url), session)
    const code = new URL(body.redirect_url).searchParams.get("code")!
    const form = { grant_type: "authorization_code", client_id, redirect_uri, code, code_verifier }
    const { id_token } = (await tokenCall(service.base, form)).body
    expect(decodeProtectedHeader(id_token).alg).toBe("RS256")
  })

  it("is not needed by the account holder", async () => {
    await elsewhere()
    expect((await post(await site.login(), session)).body.status).toBe("started")
  })

  it("is requested, given and used with an Event and an audit record each", async () => {
    await elsewhere()
    const since = new Date().toISOString()
    const other = await startRelyingParty(service.base, { clientBy: "registration" })
    try {
      const { body } = await post(await other.login())
      await call(service.base, "POST", `${path()}/${body.id}/approve`, { token: session })
      await open((await post(await other.login())).body.redirect_url)
      const events = await eventually(
        () => call(service.base, "GET", `/api/events?handle=${handle}`, { token: session }),
        ({ body }) => body.events?.[0]?.type === "identity.signed_in",
      )
      const about = events.body.events.filter(({ data }: any) => data.sign_in_id === body.id)
      expect(about.map(({ type }: { type: string }) => type)).toEqual([
        "identity.signed_in",
        "identity.sign_in_approved",
        "identity.sign_in_requested",
      ])
      expect(about[0].data).toEqual({
        sign_in_id: body.id,
        site: other.site,
        client_name: "Shop",
        scopes: ["openid", "email", "profile"],
      })
      const { body: log } = await call(service.base, "GET", `/api/audit?since=${since}&identity=${handle}`, {
        token: session,
      })
      const records = log.records.filter(({ action }: { action: string }) => /sign_in/.test(action))
      expect(records.map(({ action, outcome }: any) => `${action} ${outcome}`)).toEqual([
        "oauth.sign_in allowed",
        "agent_sign_ins.create allowed",
        "agent_sign_ins.approve allowed",
        "agent_sign_ins.create allowed",
      ])
      expect(records[0]).toMatchObject({
        target: { type: "sign_in", id: body.id, name: other.site },
        actor: { kind: "identity_key", client: "Shop" },
      })
    } finally {
      await other.stop()
    }
  })
})

describe("an attack", () => {
  const wanted = (more: Record<string, string> = {}, redirect = `${site.base}/callback`) =>
    authorizationUrl(service.base, {
      client: site.clientId,
      redirect,
      challenge: challengeOf(verifierOf()),
      more: { scope: "openid", ...more },
    })

  it("with a credential of another Org, or another Identity's, signs nobody in", async () => {
    const stranger = await signUp(service.base)
    const theirs = await makeIdentity(service.base, stranger.session)
    for (const token of [stranger.session, theirs.secrets.identity_key]) {
      expect([403, 404]).toContain((await post(wanted(), token)).status)
      const { id: mine } = await started()
      for (const [method, target] of [
        ["GET", `${path()}/${mine}`],
        ["DELETE", `${path()}/${mine}`],
        ["POST", `${path()}/${mine}/approve`],
      ] as const) {
        expect([403, 404], `${method} ${target}`).toContain(
          (await call(service.base, method, target, { token })).status,
        )
      }
    }
    // The id of another Identity's sign-in is unknown under one's own path.
    const { id: mine } = await started()
    for (const [method, suffix] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/approve"],
    ] as const) {
      const { status } = await call(service.base, method, `${path(theirs.handle)}/${mine}${suffix}`, {
        token: stranger.session,
      })
      expect(status, method).toBe(404)
    }
  })

  it("with a redirect that is not the site's gets no code, and no redirect", async () => {
    for (const redirect of [
      "https://evil.example/callback",
      `${site.base}/callback/../evil`,
      `${site.base}/other`,
      "javascript:alert(1)",
      "data:text/html,x",
      `${service.base}/console/`,
      `${site.base}/callback#x`,
      site.base.replace("http://", "http://evil@") + "/callback",
    ]) {
      const { status, body } = await post(wanted({}, redirect))
      expect([status, body.code], redirect).toEqual([400, "sign_in_invalid"])
      expect(JSON.stringify(body)).not.toContain("svc_sic_")
    }
    for (const redirect of ["javascript:alert(1)", "https://u@evil.example/", "http://evil.example/"]) {
      const { status, body } = await registerClient(service.base, [redirect])
      expect([status, body["error"]], redirect).toEqual([400, "invalid_redirect_uri"])
    }
  })

  it("with an address that is not the authorization endpoint, or another site's request, is refused", async () => {
    const url = wanted()
    for (const text of [
      url.href.replace("/auth/authorize", "/auth/authorize/../sign-in"),
      url.href.replace(service.base, "https://evil.example"),
      url.href.replace("http://", "http://u:p@"),
      `${service.base}/auth/authorize`,
      "no address",
      wanted({ client_id: "oc_unknown" }).href,
      wanted({ code_challenge_method: "plain" }).href,
      wanted({ response_type: "token" }).href,
      wanted({ request: "x" }).href,
      wanted({ request_uri: "https://evil.example/x" }).href,
      wanted({ response_mode: "fragment" }).href,
      wanted({ scope: "email" }).href,
      wanted({ scope: "openid mail:read" }).href,
      wanted({ resource: `${service.base}/api/mcp` }).href,
      `${url.href}&redirect_uri=https%3A%2F%2Fevil.example`,
      `${url.href}&scope=openid`,
      wanted({ nonce: "n".repeat(501) }).href,
    ]) {
      const { status, body } = await post(text)
      expect([status, body.code], text).toEqual([400, "sign_in_invalid"])
    }
  })

  it("with a key of certain networks, or without proof:token, signs in nowhere", async () => {
    const made = async (rights: Record<string, unknown>) =>
      (
        await call(service.base, "POST", `/api/identities/${handle}/keys`, {
          token: session,
          body: { name: "narrow", ...rights },
        })
      ).body.key as string
    expect((await post(wanted(), await made({ networks: ["127.0.0.0/8", "::1/128"] }))).body.code).toBe("scope_exceeds")
    expect((await post(wanted(), await made({ scopes: ["proof:read"] }))).body).toMatchObject({
      code: "scope_missing",
      scopes: ["proof:token"],
    })
  })
})

describe("the sites of an Identity", () => {
  it("are hosts, or every site, and do not change its audiences", async () => {
    await call(service.base, "PATCH", `/api/identities/${handle}/proof`, {
      token: session,
      body: { audiences: ["sts.amazonaws.com"] },
    })
    expect((await allow(["app.example", "localhost", "app.example:8443"])).body).toEqual({
      audiences: ["sts.amazonaws.com"],
      sites: ["app.example", "localhost", "app.example:8443"],
    })
    const most = ["com.example.app:", ...Array.from({ length: 49 }, (_, n) => `a${n}.example`)]
    expect((await allow(most)).body.sites).toEqual(most)
    expect((await allow([...most, "one-more.example"])).body.code).toBe("invalid_request")
    const hosts = "App.example app.example/x app.example?x app.example#x app.example:443 u@app.example"
    const schemes = "https://app.example https: http: Com.example: com..example:"
    for (const wrong of ["a b", "", ...hosts.split(" "), ...schemes.split(" ")]) {
      const { body } = await allow([wrong])
      expect([body.code, body.errors?.[0]?.path], wrong).toEqual(["invalid_request", "/sites/0"])
    }
    await allow("any")
    expect((await post(await site.login())).body.status).toBe("started")
    expect((await allow([], key)).body.code).toBe("admin_required")
    await allow([site.site])
  })
})

describe("the authorization endpoint", () => {
  it("shows people what an agent has to run, in a command that a shell takes literally", async () => {
    const url = await site.login()
    const page = await fetch(`${url.href}&x='$(touch%20x)'\`id\`"`, { headers: { "accept-language": "de" } })
    const text = await page.text()
    expect(page.status).toBe(200)
    expect(text).toContain("Hier meldet sich ein Agent an")
    expect(text).toContain("svc_sign_in_create")
    const command = /<code>(svc sign-in .*?)<\/code>/.exec(text)![1]!
    const unescaped = command.replaceAll("&#39;", "'").replaceAll("&quot;", '"').replaceAll("&amp;", "&")
    const printed = execFileSync("sh", ["-c", unescaped.replace(/^svc sign-in /, "printf %s ")]).toString()
    expect(new URL(printed).searchParams.get("client_id")).toBe(site.clientId)
    expect(printed).toContain("$(touch%20x)")
  })

  it("shows the same to a site that posts its request", async () => {
    const { searchParams } = await site.login()
    const page = await fetch(`${service.base}/auth/authorize`, {
      method: "POST",
      headers: { origin: site.base, "accept-language": "en" },
      body: searchParams,
    })
    const text = await page.text()
    expect([page.status, text.includes("An agent signs in here")]).toEqual([200, true])
    const [, href] = /svc sign-in '([^']*)'<\/code>/.exec(text)!
    expect((await post(href!.replaceAll("&amp;", "&"))).body.status).toBe("started")
  })

  it("still asks account holders about apps, also about those that ask for openid too", async () => {
    const { body: client } = await registerClient(service.base, ["https://app.example/callback"], "App")
    const url = (more: Record<string, string>) =>
      authorizationUrl(service.base, {
        client: client["client_id"],
        redirect: "https://app.example/callback",
        challenge: challengeOf(verifierOf()),
        more,
      })
    for (const more of [
      { scope: "openid mail:read" },
      { scope: "openid", resource: `${service.base}/api/mcp` },
      { scope: "mail:read" },
    ]) {
      const text = await (await fetch(url(more), { headers: { cookie: `svc_session=${session}` } })).text()
      expect(text, JSON.stringify(more)).toContain("Connect App to your agents?")
    }
  })
})

describe("svc sign-in", () => {
  it("prints the address to open, or that a person has to approve", async () => {
    const home = mkdtempSync(join(tmpdir(), "svc-sign-in-"))
    try {
      const svc = (...words: ReadonlyArray<string>) =>
        runHere({ home, env: { SVC_KEY: key, SVC_API_URL: service.base } }, "sign-in", ...words)
      const { code, out } = await svc((await site.login()).href)
      expect(code).toBe(0)
      expect((await open(out.trim())).claims!.sub).toBe(`agent:${id}`)
      await allow([])
      const waiting = await svc((await site.login()).href)
      expect([waiting.code, waiting.out, waiting.errors]).toEqual([1, "", expect.stringContaining("awaits approval")])
      const tool = await svc("create", handle, (await site.login()).href, "--json")
      expect(JSON.parse(tool.out).status).toBe("awaiting_approval")
    } finally {
      await allow([site.site])
      rmSync(home, { recursive: true })
    }
  })
})

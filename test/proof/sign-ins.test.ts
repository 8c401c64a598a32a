/** Signing in as the agent at a site that `openid-client` runs: what the site gets, and how long it is valid. */
import { decodeProtectedHeader } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity } from "../harness/Client.ts"
import { insertSignIn } from "../harness/SignIns.ts"
import { authorizationUrl, challengeOf, mcp, registerClient, tokenCall, verifierOf } from "../oauth/Consent.ts"
import { open, startRelyingParty } from "./RelyingParty.ts"
import { type SignInAccount, startSignInAccount } from "./SignInAccount.ts"

let stop = async () => {}
let { service, site, session, handle, key, id, path, allow, post, turn, userinfo, signIn, started } =
  {} as SignInAccount
beforeAll(async () => {
  ;({ service, site, session, handle, key, id, path, allow, post, turn, userinfo, signIn, started, stop } =
    await startSignInAccount())
})
afterAll(() => stop())

describe("a site", () => {
  it("signs the agent in by discovery, the code flow and userinfo, without special settings", async () => {
    const { visitor, body } = await signIn()
    expect(visitor.error).toBeUndefined()
    const about = {
      email: `${handle}@mail.localhost`,
      email_verified: true,
      preferred_username: handle,
      profile: expect.stringContaining(`/@${handle}`),
    }
    expect(visitor.claims).toMatchObject({ iss: service.base, sub: `agent:${id}`, aud: site.clientId, ...about })
    expect(visitor.claims!["at_hash"]).toMatch(/^[\w-]{22}$/)
    expect(visitor.userinfo).toMatchObject({ sub: `agent:${id}`, ...about })
    expect(body).toMatchObject({ status: "started", site: site.site, client_name: "Shop" })
    const read = await call(service.base, "GET", `${path()}/${body.id}`, { token: key })
    expect(read.body).toMatchObject({ status: "signed_in", scopes: ["openid", "email", "profile"] })
  })

  it("asks the account holder about 20 sign-ins at most, also if more are requested at the same time", async () => {
    await allow([])
    await service.query((sql) => insertSignIn(sql, handle, { count: 19 }))
    const login = async (_: unknown, n: number) => {
      const { body } = await registerClient(service.base, [`${site.base}/callback`], `Together ${n}`)
      const [redirect, challenge] = [`${site.base}/callback`, challengeOf(verifierOf())]
      return authorizationUrl(service.base, {
        client: body["client_id"],
        redirect,
        challenge,
        more: { scope: "openid" },
      })
    }
    const urls = await Promise.all(Array.from({ length: 8 }, login))
    // The statements overlap, because each takes a moment.
    await service.query(
      (sql) =>
        sql`create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.2); return new; end'`,
    )
    await service.query(
      (sql) => sql`create trigger slow before insert on agent_sign_in for each row execute function slow()`,
    )
    const statuses = (await Promise.all(urls.map((one) => post(one)))).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([201, ...Array<number>(7).fill(409)])
    await service.query((sql) => sql`drop function slow cascade`)
    await service.query((sql) => sql`delete from agent_sign_in where status = 'awaiting_approval'`)
    await allow([site.site])
  })

  it("may register instead of publishing a document, and choose ES256", async () => {
    const other = await startRelyingParty(service.base, {
      clientBy: "registration",
      metadata: { id_token_signed_response_alg: "ES256" },
    })
    try {
      let header: ReturnType<typeof decodeProtectedHeader> | undefined
      other.reachBy(async (url, options) => {
        const response = await fetch(url, options)
        if (!String(url).endsWith("/token")) return response
        const body = (await response.clone().json()) as Record<string, string>
        header = decodeProtectedHeader(body["id_token"]!)
        return response
      })
      const { visitor } = await signIn(other)
      expect(visitor.error).toBeUndefined()
      expect(visitor.claims!.sub).toBe(`agent:${id}`)
      expect(header!.alg).toBe("ES256")
      expect(other.clientId).toMatch(/^oc_/)
    } finally {
      await other.stop()
    }
  })

  it("rejects an ID token of which a claim or one bit of the signature was changed", async () => {
    const strict = await startRelyingParty(service.base, { clientBy: "registration" })
    strict.verifySignatures()
    let alter = (token: string) => token
    strict.reachBy(async (url, options) => {
      const response = await fetch(url, options)
      if (!String(url).endsWith("/token")) return response
      const body = (await response.json()) as { readonly id_token: string }
      return Response.json({ ...body, id_token: alter(body.id_token) })
    })
    try {
      expect((await signIn(strict)).visitor.claims!.sub).toBe(`agent:${id}`)
      alter = (token) => {
        const [head, payload, signature] = token.split(".") as [string, string, string]
        const bytes = Buffer.from(signature, "base64url")
        bytes[9]! ^= 1
        return `${head}.${payload}.${bytes.toString("base64url")}`
      }
      expect((await signIn(strict)).visitor).toEqual({ error: "OAUTH_INVALID_RESPONSE" })
      alter = (token) => {
        const [head, payload, signature] = token.split(".") as [string, string, string]
        const claims = JSON.parse(Buffer.from(payload, "base64url").toString())
        const forged = Buffer.from(JSON.stringify({ ...claims, sub: "agent:mallory" })).toString("base64url")
        return `${head}.${forged}.${signature}`
      }
      expect((await signIn(strict)).visitor).toEqual({ error: "OAUTH_INVALID_RESPONSE" })
    } finally {
      await strict.stop()
    }
  })

  it("gets no more claims than the scopes allow", async () => {
    const redirect = `${site.base}/callback`
    const { body: client } = await registerClient(service.base, [redirect], "Narrow")
    const verifier = verifierOf()
    const url = authorizationUrl(service.base, {
      client: client["client_id"],
      redirect,
      challenge: challengeOf(verifier),
      more: { scope: "openid address", prompt: "none", max_age: "0" },
    })
    const { body } = await post(url)
    const back = new URL(body.redirect_url)
    expect(Object.fromEntries(back.searchParams)).toMatchObject({ state: "s-1", iss: service.base })
    const { body: tokens } = await tokenCall(service.base, {
      grant_type: "authorization_code",
      client_id: client["client_id"],
      redirect_uri: redirect,
      code: back.searchParams.get("code")!,
      code_verifier: verifier,
    })
    expect(tokens).toMatchObject({ scope: "openid", token_type: "Bearer" })
    expect((await userinfo(tokens["access_token"])).body).toEqual({ sub: `agent:${id}` })
  })
})

describe("a code", () => {
  it("is exchanged once; a second use ends the access token", async () => {
    const { form } = await started()
    const first = await tokenCall(service.base, form)
    expect(first.status).toBe(200)
    expect(first.headers.get("cache-control")).toBe("no-store")
    expect((await userinfo(first.body["access_token"])).status).toBe(200)
    expect(await tokenCall(service.base, form)).toMatchObject({ status: 400, body: { error: "invalid_grant" } })
    expect((await userinfo(first.body["access_token"])).status).toBe(401)
  })

  it("is exchanged once when many requests present it at the same time", async () => {
    // A single code may be exchanged before the other requests read it.
    for (let n = 0; n < 6; n++) {
      const { form } = await started()
      const all = await Promise.all(Array.from({ length: 8 }, () => tokenCall(service.base, form)))
      expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
    }
  })

  it("is bound to its client, redirect URI and verifier, and lives for a minute", async () => {
    const { form, id: signInId } = await started()
    const other = (await registerClient(service.base, [form.redirect_uri], "Other")).body["client_id"]
    for (const wrong of [
      { client_id: other },
      { redirect_uri: `${site.base}/elsewhere` },
      { code_verifier: verifierOf() },
      { code: `${form.code.slice(0, -1)}${form.code.endsWith("0") ? "1" : "0"}` },
    ]) {
      const { status, body } = await tokenCall(service.base, { ...form, ...wrong })
      expect([status, body["error"]], JSON.stringify(wrong)).toEqual([400, "invalid_grant"])
    }
    await service.query(
      (sql) => sql`update agent_sign_in set expires_at = now() - interval '1 second' where id = ${signInId}`,
    )
    expect((await tokenCall(service.base, form)).body["error"]).toBe("invalid_grant")
    const { body } = await call(service.base, "GET", `${path()}/${signInId}`, { token: key })
    expect(body.status).toBe("expired")
  })

  it("is not exchanged after the credential was revoked", async () => {
    const made = await call(service.base, "POST", `/api/identities/${handle}/keys`, {
      token: session,
      body: { name: "soon revoked" },
    })
    const url = await site.login()
    const { body } = await post(url, made.body.key)
    await call(service.base, "DELETE", `/api/keys/${made.body.api_key.id}`, { token: session })
    expect((await open(body.redirect_url)).error).toBe("invalid_grant")
    expect((await post(await site.login(), made.body.key)).status).toBe(401)
  })
})

describe("a code of an app", () => {
  it("is exchanged while the Grant includes the Identity and the scope", async () => {
    const { org_id } = (
      await service.query((sql) => sql<{ org_id: string }>`select org_id from identity where id = ${id}`)
    )[0]!
    const grantId = crypto.randomUUID()
    await service.query(
      (sql) => sql`
        insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes,
          identities, created_at, expires_at)
        values (${grantId}, ${org_id}, 'oc_app', 'App', 'app.example', ''::bytea, '', '{proof:token}', ${[id]}::uuid[], now(),
          now() + interval '1 day')`,
    )
    /** Signs in as an app whose Grant is changed before the site presents the code. */
    const signedIn = async (scopes: ReadonlyArray<string>, identities: ReadonlyArray<string> | null) => {
      const { body } = await post(await site.login())
      await service.query(
        (sql) => sql`
          with changed as (update client_grant set scopes = ${scopes}, identities = ${identities}::uuid[] where id = ${grantId})
          update agent_sign_in set credential_kind = 'grant', credential_id = ${grantId} where id = ${body.id}`,
      )
      return (await open(body.redirect_url)).error
    }
    expect(await signedIn(["proof:token"], [id])).toBeUndefined()
    expect(await signedIn(["proof:token"], null)).toBeUndefined()
    expect(await signedIn(["proof:read"], [id])).toBe("invalid_grant")
    expect(await signedIn(["proof:token"], [crypto.randomUUID()])).toBe("invalid_grant")
  })
})

describe("the access token", () => {
  it("is good for userinfo only, and no other token is", async () => {
    const { visitor } = await signIn()
    const access = visitor.access!
    for (const target of [`/api/identities/${handle}`, "/api/auth/whoami", path()]) {
      expect((await call(service.base, "GET", target, { token: access })).status, target).toBe(401)
    }
    expect((await mcp(service.base, access, "tools/list")).status).toBe(401)
    for (const token of [key, session, "svc_oat_x"]) {
      const { status, headers } = await userinfo(token)
      expect([status, headers.get("www-authenticate")]).toEqual([401, 'Bearer error="invalid_token"'])
    }
    const post = await fetch(`${service.base}/api/oauth/userinfo`, {
      method: "POST",
      headers: { authorization: `Bearer ${access}` },
    })
    expect(post.status).toBe(200)
  })

  it("ends with the credential that started the sign-in, as the ID token does", async () => {
    const keyFor = async (rights: object) =>
      (
        await call(service.base, "POST", `/api/identities/${handle}/keys`, {
          token: session,
          body: { name: "brief", ...rights },
        })
      ).body
    const expires_at = new Date(Math.ceil(Date.now() / 1000) * 1000 + 90_000)
    const brief = await keyFor({ expires_at })
    const { access, claims } = await open((await post(await site.login(), brief.key)).body.redirect_url)
    expect(claims!.exp * 1000).toBe(expires_at.getTime())
    expect((await userinfo(access!)).status).toBe(200)
    await call(service.base, "DELETE", `/api/keys/${brief.api_key.id}`, { token: session })
    expect((await userinfo(access!)).status).toBe(401)
  })

  it("ends with the sign-in, which the agent may end too", async () => {
    const { visitor, body } = await signIn()
    expect((await userinfo(visitor.access!)).status).toBe(200)
    expect((await call(service.base, "DELETE", `${path()}/${body.id}`, { token: key })).status).toBe(204)
    expect((await userinfo(visitor.access!)).status).toBe(401)
    expect((await call(service.base, "DELETE", `${path()}/${body.id}`, { token: key })).status).toBe(204)
    const { body: list } = await call(service.base, "GET", `${path()}?limit=1`, { token: session })
    expect(list.sign_ins).toEqual([expect.objectContaining({ id: body.id, status: "ended" })])
    expect(list.next_cursor).not.toBeNull()
  })
})

describe("a stop", () => {
  it("ends codes and access tokens, and starts no sign-in", async () => {
    const { visitor } = await signIn()
    const { form } = await started()
    await turn("stopped")
    try {
      expect((await userinfo(visitor.access!)).status).toBe(401)
      expect((await tokenCall(service.base, form)).body["error"]).toBe("invalid_grant")
      expect((await post(await site.login())).body.code).toBe("mail_paused")
    } finally {
      await turn("active")
    }
  })
})

describe("after the end of the Identity", () => {
  it("codes, access tokens and the list are gone", async () => {
    const made = await makeIdentity(service.base, session)
    await allow("any", session, made.handle)
    const own = (url: URL) => post(url, made.secrets.identity_key, made.handle)
    const visitor = await open((await own(await site.login())).body.redirect_url)
    const late = (await own(await site.login())).body.redirect_url
    expect((await userinfo(visitor.access!)).status).toBe(200)
    await call(service.base, "DELETE", `/api/identities/${made.handle}`, { token: session })
    expect((await userinfo(visitor.access!)).status).toBe(401)
    expect((await open(late)).error).toBe("invalid_grant")
    expect([401, 404, 409]).toContain((await own(await site.login())).status)
  })
})

/** Identity tokens, verified by `jose` from the published keys as a cloud would verify them. */
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from "jose"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let org: string
let handle: string
let key: string
let id: string
const audience = "sts.amazonaws.com"
beforeAll(async () => {
  service = await sharedService()
  const account = await signUp(service.base)
  session = account.session
  org = account.org.id
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  key = made.secrets.identity_key
  id = made.identity.id
})

const create = (token: string, body: Readonly<Record<string, unknown>> = {}, name = handle) =>
  call(service.base, "POST", `/api/identities/${name}/tokens`, { token, body: { audience, ...body } })
const allow = (audiences: unknown, token = session, headers: Record<string, string> = {}) =>
  call(service.base, "PATCH", `/api/identities/${handle}/proof`, { token, body: { audiences }, headers })
const narrow = async (rights: Readonly<Record<string, unknown>>, path = `/api/identities/${handle}/keys`) =>
  (await call(service.base, "POST", path, { token: session, body: { name: "narrow", ...rights } })).body

const verify = async (token: string, expected = audience, currentDate = new Date()) => {
  const { body } = await call(service.base, "GET", "/.well-known/openid-configuration")
  const keys = createRemoteJWKSet(new URL(body.jwks_uri))
  return (await jwtVerify(token, keys, { issuer: body.issuer, audience: expected, currentDate })).payload
}

describe("identity token", () => {
  it("is verified from the published documents, with the claims of the Identity", async () => {
    for (const algorithm of ["RS256", "ES256"]) {
      const { status, body, headers } = await create(session, { algorithm, nonce: "n-1", expires_in: 120 })
      expect(status, JSON.stringify(body)).toBe(201)
      expect(headers.get("cache-control")).toBe("no-store")
      expect(decodeProtectedHeader(body.token)).toMatchObject({ alg: algorithm, typ: "JWT" })
      const claims = await verify(body.token)
      expect(claims).toMatchObject({ sub: `agent:${id}`, handle, org, email_verified: true, nonce: "n-1" })
      expect(claims["email"]).toBe(`${handle}@mail.localhost`)
      expect(claims.exp! - claims.iat!).toBe(120)
      expect(claims.nbf).toBe(claims.iat)
      expect(new Date(body.expires_at).getTime()).toBe(claims.exp! * 1000)
    }
  })

  it("is refused by a verifier when it is altered, expired or meant for another audience", async () => {
    const { token } = (await create(session)).body
    const [head, payload, signature] = token.split(".")
    const other = Buffer.from(JSON.stringify({ ...(await verify(token)), handle: "mallory" })).toString("base64url")
    await expect(verify(`${head}.${other}.${signature}`)).rejects.toThrow("signature verification failed")
    await expect(
      verify(`${head}.${payload}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`),
    ).rejects.toThrow()
    await expect(verify(token, "other.example")).rejects.toThrow('"aud"')
    await expect(verify(token, audience, new Date(Date.now() + 3_600_000))).rejects.toThrow('"exp"')
  })

  it("is on the audit log with its audience and id", async () => {
    const { jti } = await verify((await create(session)).body.token)
    const { body } = await call(service.base, "GET", "/api/audit?action=proof.createToken", { token: session })
    expect(body.records[0]).toMatchObject({
      outcome: "allowed",
      class: "secret",
      scope: "proof:token",
      target: { type: "token", id: jti, name: audience },
    })
  })

  it("is created again by a request that is repeated after a crash, with a record of its own, as a signature is", async () => {
    for (const [path, body, action] of [
      ["tokens", { audience }, "proof.createToken"],
      ["signatures", { method: "GET", url: "https://shop.example/" }, "proof.createSignature"],
    ] as const) {
      const headers = { "idempotency-key": `crash-${path}` }
      const target = `/api/identities/${handle}/${path}`
      const ask = () => call(service.base, "POST", target, { token: session, body, headers })
      const since = new Date().toISOString()
      expect((await ask()).status).toBe(201)
      // The process ended before it stored the response.
      await service.query(
        (sql) => sql`
          update idempotency_record set status = null, headers = null, body = null, started_at = now() - interval '1 minute'
          where key = ${headers["idempotency-key"]}`,
      )
      expect((await ask()).status).toBe(201)
      const log = await call(service.base, "GET", `/api/audit?action=${action}&since=${since}`, { token: session })
      expect(log.body.records.map(({ outcome }: { outcome: string }) => outcome)).toEqual(["allowed", "allowed"])
    }
  })

  it("is never for this service, in any spelling of its address", async () => {
    const { host } = new URL(service.base)
    for (const ours of [
      service.base,
      `${service.base}/`,
      `${service.base}/api/mcp`,
      host,
      service.base.toUpperCase(),
    ]) {
      expect((await create(session, { audience: ours })).body.code, ours).toBe("audience_not_allowed")
    }
  })

  it("has a supported algorithm, a lifetime of at most an hour, and an audience", async () => {
    expect((await create(session, { algorithm: "none" })).body.code).toBe("algorithm_unsupported")
    for (const wrong of [{ expires_in: 3601 }, { expires_in: 0 }, { audience: "" }, { audience: "a\nb" }]) {
      expect((await create(session, wrong)).body.code).toBe("invalid_request")
    }
  })
})

describe("audiences", () => {
  it("must be allowed by the account holder before an Identity Key gets a token", async () => {
    const refused = await create(key)
    expect([refused.status, refused.body.code]).toEqual([403, "audience_not_allowed"])
    // The account holder reads about a new audience once, however often the agent asks.
    await create(key)
    const events = await call(service.base, "GET", "/api/events?type=proof.token_refused", { token: session })
    expect(events.body.events.map(({ data }: { data: unknown }) => data)).toEqual([{ audience }])
    expect(refused.body.detail).toContain(`/api/identities/${handle}/proof`)
    expect((await allow([audience])).body).toEqual({ audiences: [audience], sites: [] })
    await verify((await create(key)).body.token)
    expect((await create(key, { audience: "other.example" })).body.code).toBe("audience_not_allowed")
    await allow("any")
    await verify((await create(key, { audience: "other.example" })).body.token, "other.example")
    const { body } = await call(service.base, "GET", "/api/audit?action=proof.createToken&outcome=refused", {
      token: session,
    })
    expect(body.records[0]).toMatchObject({ code: "audience_not_allowed", identity: handle })
  })

  it("are changed by the account holder only, and only if they are as read", async () => {
    expect((await allow("any", key)).body.code).toBe("admin_required")
    expect((await allow([audience], session, { "if-match": '"other"' })).status).toBe(412)
  })
})

describe("a narrowed credential", () => {
  it("needs the scope proof:token, and is bound by the list although it is an Admin Key", async () => {
    const without = await narrow({ scopes: ["proof:admin"] })
    expect((await create(without.key)).body).toMatchObject({ code: "scope_missing", scopes: ["proof:token"] })
    await allow([audience])
    const admin = await narrow({ scopes: ["proof:token"] }, "/api/keys")
    await verify((await create(admin.key)).body.token)
    expect((await create(admin.key, { audience: "other.example" })).body.code).toBe("audience_not_allowed")
  })

  it("gets no token that is valid longer or in more networks than itself", async () => {
    await allow([audience])
    const bound = await narrow({ networks: ["127.0.0.0/8", "::1/128"] })
    expect((await create(bound.key)).body.code).toBe("scope_exceeds")
    const end = new Date(Math.ceil(Date.now() / 1000) * 1000 + 90_000)
    const short = await narrow({ expires_at: end.toISOString() })
    const claims = await verify((await create(short.key, { expires_in: 3600 })).body.token)
    expect(claims.exp! * 1000).toBe(end.getTime())
  })
})

describe("no token is created", () => {
  it("after the Identity was stopped, until the stop is lifted", async () => {
    const turn = (outgoing: string) =>
      call(service.base, "PATCH", `/api/identities/${handle}/mail`, { token: session, body: { outgoing } })
    await turn("stopped")
    const since = new Date().toISOString()
    for (const token of [session, key]) expect((await create(token)).body.code).toBe("mail_paused")
    // The log has two refusals, and no token.
    const records = await eventually(
      () => call(service.base, "GET", `/api/audit?action=proof.createToken&since=${since}`, { token: session }),
      ({ body }) => body.records.length >= 2,
    )
    expect(records.body.records.map(({ outcome }: { outcome: string }) => outcome)).toEqual(["refused", "refused"])
    await turn("active")
    expect((await create(session)).status).toBe(201)
  })

  it("in any process after a stop has returned, while callers keep asking", async () => {
    let stopped = false
    const late: Array<number> = []
    const asking = Array.from({ length: 4 }, async () => {
      for (let n = 0; n < 15; n++) {
        const begun = stopped
        const { status } = await create(session, { algorithm: "ES256" })
        if (begun && status === 201) late.push(n)
      }
    })
    await call(service.base, "PATCH", `/api/identities/${handle}/mail`, {
      token: session,
      body: { outgoing: "stopped" },
    })
    stopped = true
    await Promise.all(asking)
    expect(late).toEqual([])
    await call(service.base, "PATCH", `/api/identities/${handle}/mail`, {
      token: session,
      body: { outgoing: "active" },
    })
  })

  it("with a revoked key, for a deleted Identity, or for an Identity of another Org", async () => {
    const { key: revoked, api_key } = await narrow({}, "/api/keys")
    expect((await create(revoked)).status).toBe(201)
    await call(service.base, "DELETE", `/api/keys/${api_key.id}`, { token: session })
    expect((await create(revoked)).status).toBe(401)
    const stranger = await signUp(service.base)
    expect((await create(stranger.session)).status).toBe(404)
    const ended = await makeIdentity(service.base, session)
    await call(service.base, "DELETE", `/api/identities/${ended.handle}`, { token: session })
    expect([404, 409]).toContain((await create(session, {}, ended.handle)).status)
  })
})

import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const link = (body: unknown, base = service.base) => call(base, "POST", "/api/auth/magic-link", { body })
const tokenOf = (answer: { body: any }) => new URL(answer.body.dev_magic_link).searchParams.get("token")
const consume = (token: unknown) => call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })

describe("sign-up and sign-in", () => {
  it("needs the Terms on first contact and never again", async () => {
    const email = "terms@example.org"
    const refused = await link({ email })
    expect([refused.status, refused.body.code]).toEqual([422, "tos_not_accepted"])
    expect((await link({ email, tos_accepted: true })).status).toBe(202)
    const again = await link({ email: "Terms@Example.org" })
    expect(again.status).toBe(202)
    expect(Object.keys(again.body).sort()).toEqual(["dev_magic_link", "expires_at", "status"])
  })

  it("consumes a link once, even when two try at once", async () => {
    const token = tokenOf(await link({ email: "once@example.org", tos_accepted: true, language: "de" }))
    const answers = await Promise.all(Array.from({ length: 10 }, () => consume(token)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(400)])
    expect(answers.find(({ status }) => status === 400)?.body.code).toBe("magic_link_invalid")
    const { body } = answers.find(({ status }) => status === 200)!
    expect(body.session_token).toMatch(/^svc_sess_[0-9A-Za-z]{49}$/)
    expect(body.org).toMatchObject({ email: "once@example.org", language: "de" })
    expect(body.org.email_verified_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  it("makes one Org of ten first contacts at once", async () => {
    await Promise.all(Array.from({ length: 5 }, () => link({ email: "race@example.org", tos_accepted: true })))
    const orgs = await service.query<{ n: number }>(
      (sql) => sql`select count(*)::int as n from org where email = 'race@example.org'`,
    )
    expect(orgs).toEqual([{ n: 1 }])
  })

  it("refuses a sixth link for an address within 15 minutes", async () => {
    for (let i = 0; i < 5; i++)
      expect((await link({ email: "often@example.org", tos_accepted: true })).status).toBe(202)
    const sixth = await link({ email: "often@example.org" })
    expect([sixth.status, sixth.body.code, sixth.headers.get("retry-after")]).toEqual([429, "rate_limited", "900"])
    expect(sixth.headers.get("ratelimit")).toContain('"magic_link_address";r=0;t=900')
  })

  it("counts links of an address that are asked for at once", async () => {
    const email = "crowd@example.org"
    expect((await link({ email, tos_accepted: true })).status).toBe(202)
    const answers = await Promise.all(Array.from({ length: 30 }, () => link({ email })))
    expect(answers.filter(({ status }) => status === 202).length).toBe(4)
    expect(answers.filter(({ status }) => status === 429).length).toBe(26)
  })

  it("takes the language of the browser where none is named", async () => {
    const answer = await call(service.base, "POST", "/api/auth/magic-link", {
      body: { email: "fr@example.org", tos_accepted: true },
      headers: { "accept-language": "pt, fr-CH;q=0.9, en;q=0.8" },
    })
    expect((await consume(tokenOf(answer))).body.org.language).toBe("fr")
  })

  it("lets in only the invited, or nobody", async () => {
    const invite = await startService({ env: { SVC_SIGNUP: "invite", SVC_INVITE_CODES: "early,bird" } })
    try {
      expect((await call(invite.base, "GET", "/api/auth/registration")).body).toEqual({ state: "invite" })
      const without = await link({ email: "a@example.org", tos_accepted: true, invite_code: "wrong" }, invite.base)
      expect([without.status, without.body.code]).toEqual([403, "invite_required"])
      expect(
        (await link({ email: "a@example.org", tos_accepted: true, invite_code: "bird" }, invite.base)).status,
      ).toBe(202)
      expect((await link({ email: "a@example.org" }, invite.base)).status).toBe(202)
    } finally {
      await invite.stop()
    }
    const closed = await startService({ env: { SVC_SIGNUP: "closed", SVC_INVITE_CODES: "early" } })
    try {
      const answer = await link({ email: "a@example.org", tos_accepted: true, invite_code: "early" }, closed.base)
      expect([answer.status, answer.body.code]).toEqual([403, "invite_required"])
    } finally {
      await closed.stop()
    }
  })

  it("opens its link's page without consuming it, and signs in on the click", async () => {
    const answer = await link({ email: "page@example.org", tos_accepted: true })
    const opened = await call(
      service.base,
      "GET",
      new URL(answer.body.dev_magic_link).pathname + new URL(answer.body.dev_magic_link).search,
    )
    expect(opened.status).toBe(200)
    expect(opened.body).toContain("<form")
    const clicked = await call(service.base, "POST", "/auth/magic-link", {
      body: `token=${tokenOf(answer)}`,
      headers: { "content-type": "application/x-www-form-urlencoded" },
    })
    expect(clicked.body).toMatch(/svc_sess_[0-9A-Za-z]{49}/)
    const evil = await call(
      service.base,
      "GET",
      "/auth/magic-link?token=%22%3E%3Cscript%3Ex%3C/script%3Exxxxxxxxxxxxxxxxxxxx",
    )
    expect([evil.status, evil.body.includes("<script")]).toEqual([400, false])
  })
})

describe("a session", () => {
  it("is read with the Terms it stands under, and stops at once when revoked", async () => {
    const { session, org } = await signUp(service.base)
    const read = await call(service.base, "GET", "/api/auth/session", { token: session })
    expect(read.body).toMatchObject({ org: { id: org.id }, tos: { gated: false, accepted_version: org.tos_version } })
    expect(read.headers.get("cache-control")).toBe("no-store")
    expect((await call(service.base, "DELETE", "/api/auth/session", { token: session })).status).toBe(204)
    const after = await call(service.base, "GET", "/api/auth/session", { token: session })
    expect([after.status, after.body.code, after.headers.get("www-authenticate")]).toEqual([
      401,
      "unauthenticated",
      "Bearer",
    ])
  })
})

describe("API keys", () => {
  it("are minted once, listed without their secret, and stop at once when revoked", async () => {
    const { session } = await signUp(service.base)
    const minted = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "build machine" } })
    expect(minted.status).toBe(201)
    expect(minted.headers.get("location")).toBe(`/api/keys/${minted.body.api_key.id}`)
    const { key, api_key } = minted.body
    expect(key).toMatch(/^svc_admin_[0-9A-Za-z]{49}$/)
    expect(api_key).toMatchObject({
      name: "build machine",
      scope: "org",
      identity_id: null,
      token_prefix: key.slice(0, 16),
    })
    const list = await call(service.base, "GET", "/api/keys", { token: key })
    expect(JSON.stringify(list.body)).not.toContain(key)
    expect(list.body.api_keys.map(({ id }: { id: string }) => id)).toEqual([api_key.id])
    const path = `/api/keys/${api_key.id}`
    expect((await call(service.base, "GET", path, { token: session })).body.id).toBe(api_key.id)
    expect((await call(service.base, "DELETE", path, { token: session })).status).toBe(204)
    expect((await call(service.base, "DELETE", path, { token: session })).status).toBe(204)
    expect((await call(service.base, "GET", path, { token: session })).status).toBe(404)
    expect((await call(service.base, "GET", "/api/auth/whoami", { token: key })).status).toBe(401)
    const events = await eventually(
      () => call(service.base, "GET", "/api/events", { token: session }),
      ({ body }) => body.events.length === 2,
    )
    const data = { key_id: api_key.id, name: "build machine", scope: "org", identity_id: null, handle: null }
    expect(events.body.events.map(({ type, data }: any) => [type, data])).toEqual([
      ["api_key.revoked", data],
      ["api_key.created", data],
    ])
    const stored = await service.query<{ found: boolean }>(
      (sql) => sql`select encode(token_hash, 'escape') like '%svc_%' as found from api_key`,
    )
    expect(stored.every(({ found }) => !found)).toBe(true)
  })

  it("leave Events that keep who made and revoked them, an Identity's key among them", async () => {
    const { session } = await signUp(service.base)
    const admin = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "admin" } })
    const { handle, identity, secrets } = await makeIdentity(service.base, session)
    const revoked = await call(service.base, "DELETE", `/api/keys/${secrets.api_key.id}`, { token: admin.body.key })
    expect(revoked.status).toBe(204)
    const causes = await service.query<{ type: string; data: unknown; caused_by: unknown }>(
      (sql) => sql`select type, data, caused_by from event where data ->> 'key_id' = ${admin.body.api_key.id}
                     or data ->> 'key_id' = ${secrets.api_key.id} and type = 'api_key.revoked' order by seq`,
    )
    expect(causes).toEqual([
      {
        type: "api_key.created",
        data: { key_id: admin.body.api_key.id, name: "admin", scope: "org", identity_id: null, handle: null },
        caused_by: {
          kind: "session",
          credential_id: expect.any(String),
          request_id: admin.headers.get("request-id"),
        },
      },
      {
        type: "api_key.revoked",
        data: { key_id: secrets.api_key.id, name: handle, scope: "identity", identity_id: identity.id, handle },
        caused_by: {
          kind: "admin_key",
          credential_id: admin.body.api_key.id,
          request_id: revoked.headers.get("request-id"),
        },
      },
    ])
  })

  it("tell whoami what they are, each kind", async () => {
    const { session } = await signUp(service.base)
    const { key } = (await call(service.base, "POST", "/api/keys", { token: session, body: { name: "k" } })).body
    const { handle, identity, secrets } = await makeIdentity(service.base, session)
    const caller = async (token: string) => (await call(service.base, "GET", "/api/auth/whoami", { token })).body.caller
    expect(await caller(session)).toMatchObject({ kind: "session", key_id: null, handle: null })
    expect(await caller(key)).toMatchObject({ kind: "admin_key", key_name: "k", identity_id: null })
    expect(await caller(secrets.identity_key)).toMatchObject({ kind: "identity_key", identity_id: identity.id, handle })
    const session404 = await call(service.base, "DELETE", "/api/auth/session", { token: key })
    expect([session404.status, session404.body.code]).toEqual([403, "session_required"])
    const foreign = await signUp(service.base)
    expect(
      (await call(service.base, "GET", `/api/keys/${(await caller(key)).key_id}`, { token: foreign.session })).status,
    ).toBe(404)
  })
})

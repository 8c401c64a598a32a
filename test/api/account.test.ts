import { get, type IncomingMessage } from "node:http"
import { unzipSync } from "fflate"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
const ownTerms = "https://operator.example/terms"
beforeAll(async () => {
  service = await startService({ env: { SVC_TOS_URL: ownTerms } })
})
afterAll(() => service.stop())

const link = (body: unknown) => call(service.base, "POST", "/api/auth/magic-link", { body })
const tokenOf = (answer: { body: any }) => new URL(answer.body.dev_magic_link).searchParams.get("token")
const consume = (token: unknown) => call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })

describe("Sign-up and sign-in", () => {
  it("returns a session once and then rejects the link", async () => {
    const linkResponse = await link({ email: "Once@example.org", tos_accepted: true, language: "de" })
    expect([linkResponse.status, Object.keys(linkResponse.body).sort()]).toEqual([
      202,
      ["dev_magic_link", "expires_at", "status"],
    ])
    const { status, body } = await consume(tokenOf(linkResponse))
    expect(status).toBe(200)
    expect(body.session_token).toMatch(/^svc_sess_[0-9A-Za-z]{49}$/)
    expect(body.org).toMatchObject({ email: "once@example.org", language: "de" })
    expect(body.org.email_verified_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const repeated = await consume(tokenOf(linkResponse))
    expect([repeated.status, repeated.body.code]).toEqual([400, "magic_link_invalid"])
  })

  it("counts concurrent requests for links of an address", async () => {
    const email = "crowd@example.org"
    expect((await link({ email, tos_accepted: true })).status).toBe(202)
    const answers = await Promise.all(Array.from({ length: 30 }, () => link({ email })))
    expect(answers.filter(({ status }) => status === 202).length).toBe(4)
    expect(answers.filter(({ status }) => status === 429).length).toBe(26)
  })

  it("leads to the operator's own Terms if there are any", async () => {
    const { status, headers } = await fetch(`${service.base}/terms`, { redirect: "manual" })
    expect([status, headers.get("location")]).toEqual([302, ownTerms])
  })

  it("uses the language of the browser by default", async () => {
    const answer = await call(service.base, "POST", "/api/auth/magic-link", {
      body: { email: "fr@example.org", tos_accepted: true },
      headers: { "accept-language": "pt, fr-CH;q=0.9, en;q=0.8" },
    })
    expect((await consume(tokenOf(answer))).body.org.language).toBe("fr")
  })

  it("opens a link's page without consuming it, and sets a cookie that no script can read on the click", async () => {
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
    expect([clicked.status, clicked.headers.get("location")]).toEqual([303, "/console/"])
    expect(clicked.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^svc_session=svc_sess_[^_\W]{49}; Max-Age=34560000; Path=\/; HttpOnly; SameSite=Lax$/),
      "svc_signed_in=1; Max-Age=34560000; Path=/; SameSite=Lax",
    ])
    expect(clicked.body).not.toContain("svc_sess_")
    // A late response with a cookie would replace that of an account which has signed in meanwhile.
    const [cookie] = clicked.headers.getSetCookie()[0]!.split(";")
    const own = { cookie: cookie!, "sec-fetch-site": "same-origin" }
    const read = await call(service.base, "GET", "/api/auth/session", { headers: own })
    expect([read.status, read.headers.getSetCookie()]).toEqual([200, []])
    const evil = await call(
      service.base,
      "GET",
      "/auth/magic-link?token=%22%3E%3Cscript%3Ex%3C/script%3Exxxxxxxxxxxxxxxxxxxx",
    )
    expect([evil.status, evil.body.includes("<script")]).toEqual([400, false])
  })
})

describe("Session", () => {
  it("is returned with its Terms and ends immediately when revoked", async () => {
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
  it("are shown once, listed without their secret, and end immediately when revoked", async () => {
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

  it("raise Events that name who created and revoked them, including Identity Keys", async () => {
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

  it("report their own kind in whoami", async () => {
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

describe("Device login", () => {
  it("returns a working key after its approval", async () => {
    const { session } = await signUp(service.base)
    const { body: started } = await call(service.base, "POST", "/api/auth/device", {
      body: { name: "laptop", client: "svc 0.1" },
    })
    expect(started).toMatchObject({ interval_seconds: 5, verification_uri: `${service.base}/auth/device` })
    expect(started.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    expect(started.verification_uri_complete).toContain(started.user_code)
    const poll = () =>
      call(service.base, "POST", "/api/auth/device/token", { body: { device_code: started.device_code } })
    const at = (method: string, path: string) =>
      call(service.base, method, `/api/auth/device/${path}`, { token: session })
    expect(await poll()).toMatchObject({ status: 400, body: { code: "authorization_pending" } })
    const lower = started.user_code.toLowerCase().replace("-", "")
    const view = await at("GET", lower)
    expect(view.body).toMatchObject({ user_code: started.user_code, name: "laptop", status: "pending" })
    expect((await at("POST", `${lower}/approve`)).status).toBe(204)
    expect((await at("POST", `${lower}/deny`)).status).toBe(409)
    const { status, body, headers } = await poll()
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"])
    expect(body).toMatchObject({ api_key: { name: "laptop", scope: "org" } })
    const who = await call(service.base, "GET", "/api/auth/whoami", { token: body.key })
    expect(who.body.caller).toMatchObject({ kind: "admin_key", key_name: "laptop" })
    expect([(await at("GET", "BBBB-BBBB")).status, (await at("GET", "%00")).status]).toEqual([404, 400])
  })
})

describe("Export", () => {
  const archive = async (path: string, token: string) => {
    const response = await fetch(`${service.base}${path}`, { headers: { authorization: `Bearer ${token}` } })
    expect(response.headers.get("content-type")).toBe("application/zip")
    return Object.keys(unzipSync(new Uint8Array(await response.arrayBuffer())))
  }
  const run = async (token: string) => {
    const linkResponse = await call(service.base, "POST", "/api/exports", { token })
    expect(linkResponse.status).toBe(202)
    const at = `/api/exports/${linkResponse.body.id}`
    return eventually(
      () => call(service.base, "GET", at, { token }),
      ({ body: { status } }) => status === "ready",
    )
  }

  it("is not sent to the end if the credential that downloads it is revoked meanwhile", async () => {
    const { session } = await signUp(service.base)
    const { identity } = await makeIdentity(service.base, session)
    // More than the buffers of a connection hold.
    await service.query(
      (sql) => sql`
        insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
        select uuidv7(), ${identity.id}, 1, '{}', json_build_object('text', (
          select string_agg(md5(n::text || k), '') from generate_series(1, 3125) k)), now(), now() from generate_series(1, 99) n`,
    )
    const { body } = await run(session)
    const { body: made } = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "k" } })
    const headers = { authorization: `Bearer ${made.key}` }
    const events = await fetch(`${service.base}/api/events/stream`, { headers })
    const download = await new Promise<IncomingMessage>((resolve) =>
      get(`${service.base}${body.download_url}`, { headers }, resolve),
    )
    await call(service.base, "DELETE", `/api/keys/${made.api_key.id}`, { token: session })
    await events.text()
    const rest = async () => {
      for await (const _ of download);
    }
    await expect(rest()).rejects.toThrow("aborted")
  })

  it("is a zip with Vault values for a session only, and with its own Identity for an Identity Key", async () => {
    const { session } = await signUp(service.base)
    const [ada, bob] = [await makeIdentity(service.base, session), await makeIdentity(service.base, session)]
    const key = ada.secrets.identity_key
    const { body: complete } = await run(session)
    expect(complete).toMatchObject({ identity: null, download_url: `/api/exports/${complete.id}/archive` })
    expect(await archive(complete.download_url, session)).toContain("vault_values.jsonl")
    const admin = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "k" } })
    expect(await archive(complete.download_url, admin.body.key)).not.toContain("vault_values.jsonl")
    const { body: own } = await run(key)
    expect(own.identity).toBe(ada.handle)
    expect(await archive(own.download_url, key)).toContain(`${ada.handle}.mbox`)
    expect((await call(service.base, "GET", complete.download_url, { token: key })).status).toBe(404)
    const foreign = { token: key, body: { identity: bob.handle } }
    expect((await call(service.base, "POST", "/api/exports", foreign)).body.code).toBe("foreign_identity")
  })
})

describe("Account deletion", () => {
  it("requires the account holder and the address, and rejects every credential immediately", async () => {
    const owner = await signUp(service.base)
    const ada = await makeIdentity(service.base, owner.session)
    const admin = (await call(service.base, "POST", "/api/keys", { token: owner.session, body: { name: "k" } })).body
      .key
    const remove = (token: string, body?: object) =>
      call(service.base, "POST", "/api/account/deletion", { token, ...(body === undefined ? {} : { body }) })
    expect((await remove(owner.session)).body.code).toBe("confirmation_mismatch")
    expect((await remove(owner.session, { confirm: "someone@example.org" })).body.code).toBe("confirmation_mismatch")
    expect((await remove(admin, { confirm: owner.email })).body.code).toBe("session_required")
    const accepted = await remove(owner.session, { confirm: owner.email.toUpperCase() })
    expect(accepted.status).toBe(202)
    expect(accepted.body).toMatchObject({ status: "deleting", identities: 1 })
    for (const token of [owner.session, admin, ada.secrets.identity_key]) {
      expect((await call(service.base, "GET", "/api/auth/whoami", { token })).status).toBe(401)
    }
    await eventually(
      async () => (await link({ email: owner.email, tos_accepted: true })).body,
      ({ dev_magic_link }) => dev_magic_link !== null,
    )
  })
})

describe("Sessions of an account", () => {
  it("are listed with their browser and ended individually or together", async () => {
    const email = "sessions@example.org"
    const open = async (agent: string) => {
      const linkResponse = await link({ email, tos_accepted: true })
      const { body } = await call(service.base, "POST", "/api/auth/magic-link/consume", {
        body: { token: tokenOf(linkResponse) },
        headers: { "user-agent": agent },
      })
      return { token: body.session_token as string, id: body.session.id as string }
    }
    const [first, second, third] = [await open("One/1"), await open("Two/2"), await open("Three/3")]
    const list = async (token: string) => call(service.base, "GET", "/api/auth/sessions", { token })
    const { body } = await list(second.token)
    expect(body.sessions.map(({ id, user_agent, current }: any) => [id, user_agent, current])).toEqual([
      [third.id, "Three/3", false],
      [second.id, "Two/2", true],
      [first.id, "One/1", false],
    ])
    const end = (token: string, id: string) => call(service.base, "DELETE", `/api/auth/sessions/${id}`, { token })
    const stranger = await signUp(service.base)
    expect((await end(stranger.session, first.id)).status).toBe(404)
    expect((await end(second.token, first.id)).status).toBe(204)
    expect([(await list(first.token)).status, (await end(second.token, first.id)).status]).toEqual([401, 404])
    // A browser that ends its own session forgets the cookie, and no other does.
    const asBrowser = (token: string, id: string) =>
      call(service.base, "DELETE", `/api/auth/sessions/${id}`, {
        headers: { cookie: `svc_session=${token}`, "sec-fetch-site": "same-origin", "svc-console": "1" },
      })
    const fourth = await open("Four/4")
    expect((await asBrowser(third.token, fourth.id)).headers.get("set-cookie")).toBeNull()
    const fifth = await open("Five/5")
    expect((await asBrowser(fifth.token, fifth.id)).headers.get("set-cookie")).toMatch(/^svc_session=; .*Max-Age=0/)
    expect([(await list(fourth.token)).status, (await list(fifth.token)).status]).toEqual([401, 401])
    expect((await call(service.base, "DELETE", "/api/auth/sessions", { token: third.token })).status).toBe(204)
    expect([(await list(second.token)).status, (await list(third.token)).status]).toEqual([401, 401])
    expect((await list(stranger.session)).status).toBe(200)
  })
})

describe("Language of an account", () => {
  it("can be changed by its holder", async () => {
    const { session } = await signUp(service.base)
    const change = (body: unknown) => call(service.base, "PATCH", "/api/account", { token: session, body })
    expect((await change({ language: "xx" })).status).toBe(400)
    expect((await change({ language: "de" })).body).toMatchObject({ language: "de" })
    expect((await call(service.base, "GET", "/api/auth/session", { token: session })).body.org.language).toBe("de")
  })
})

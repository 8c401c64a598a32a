import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

describe("Identity", () => {
  it("is provisioned in four steps and has its addresses", async () => {
    const { session } = await signUp(service.base)
    const handle = newHandle()
    const created = await call(service.base, "POST", "/api/identities", { token: session, body: { handle } })
    expect(created.status).toBe(202)
    expect(created.body.saga.steps.map((step: { name: string }) => step.name)).toEqual([
      "mailbox",
      "tunnel",
      "card",
      "identity_key",
    ])
    const ready = await eventually(
      () => call(service.base, "GET", `/api/identities/${handle}`, { token: session }),
      ({ body }) => body.status === "ready",
    )
    expect(ready.body).toMatchObject({
      handle,
      email: `${handle}@mail.localhost`,
      profile_url: `${service.base}/@${handle}`,
      card_url: `${service.base}/@${handle}/agent-card.json`,
      tunnel: { hostname: `${handle}.tunnel.localhost`, connected: false },
      saga: { kind: "provisioning", status: "completed" },
    })
    expect(ready.body.tunnel.port).toBeGreaterThanOrEqual(20000)
    expect(
      ready.body.saga.steps.every(
        (step: { status: string; attempts: number }) => step.status === "done" && step.attempts === 1,
      ),
    ).toBe(true)
    expect(JSON.stringify(ready.body)).not.toMatch(/svc_id_|password/)
  })

  it("measures onboarding on the Org's first ready Identity only", async () => {
    const { session } = await signUp(service.base)
    const first = await makeIdentity(service.base, session)
    const second = await makeIdentity(service.base, session)
    const { seconds, signed_up_at, ready_at } = first.identity.onboarding
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBe((Date.parse(ready_at) - Date.parse(signed_up_at)) / 1000)
    expect(second.identity.onboarding).toBeNull()
  })

  it("accepts any spelling of its name, and its key only its own name", async () => {
    const { session } = await signUp(service.base)
    const one = await makeIdentity(service.base, session)
    const other = await makeIdentity(service.base, session)
    const spelled = one.handle.replace("x", "-X")
    const read = await call(service.base, "GET", `/api/identities/${spelled}`, { token: one.secrets.identity_key })
    expect(read.status).toBe(200)
    expect(read.body.handle).toBe(one.handle)
    for (const name of [other.handle, "no-such-name"]) {
      const foreign = await call(service.base, "GET", `/api/identities/${name}`, { token: one.secrets.identity_key })
      expect([foreign.status, foreign.body.code]).toEqual([403, "foreign_identity"])
    }
    const org = await call(service.base, "GET", "/api/identities", { token: one.secrets.identity_key })
    expect([org.status, org.body.code]).toEqual([403, "org_scope_required"])
  })

  it("of another Org is indistinguishable from an unknown one", async () => {
    const [owner, stranger] = [await signUp(service.base), await signUp(service.base)]
    const { handle } = await makeIdentity(service.base, owner.session)
    const strip = ({ status, body }: { status: number; body: any }) => ({ status, body: { ...body, instance: "" } })
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/retry"],
      ["GET", "/identity-key"],
      ["POST", "/identity-key/ack"],
      ["GET", "/messages"],
      ["GET", "/webhooks"],
    ] as const) {
      const foreign = await call(service.base, method, `/api/identities/${handle}${path}`, { token: stranger.session })
      const none = await call(service.base, method, `/api/identities/nobodyhasthis${path}`, { token: stranger.session })
      expect(strip(foreign)).toEqual(strip(none))
      expect(foreign.status).toBe(404)
    }
  })

  it("returns its secrets until they are acknowledged", async () => {
    const { session } = await signUp(service.base)
    const { handle, secrets } = await makeIdentity(service.base, session)
    expect(secrets.identity_key).toMatch(/^svc_id_[0-9A-Za-z]{49}$/)
    expect(secrets.imap).toMatchObject({ username: `${handle}@mail.localhost`, port: service.imapPort })
    const path = `/api/identities/${handle}/identity-key`
    expect((await call(service.base, "GET", path, { token: session })).body).toEqual(secrets)
    expect((await call(service.base, "POST", `${path}/ack`, { token: secrets.identity_key })).status).toBe(204)
    expect((await call(service.base, "POST", `${path}/ack`, { token: session })).status).toBe(204)
    expect((await call(service.base, "GET", path, { token: session })).body).toEqual({})
  })

  it("is shown as being deleted even if its deletion ends before the response is made", async () => {
    const { session } = await signUp(service.base)
    await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const read = () => call(service.base, "GET", `/api/identities/${handle}`, { token: session })
    const { body: before } = await read()
    // When its deletion starts, the Identity moves to another account, so that reading it fails as after the deletion.
    const run = (statement: string) => service.query((sql) => sql.unsafe(statement))
    await run(`create function leave() returns trigger language plpgsql as $$ begin
      new.org_id := (select id from org where id <> new.org_id limit 1); return new; end $$`)
    await run(`create trigger leave before update of status on identity for each row
      when (new.handle = '${handle}' and new.status = 'deleting') execute function leave()`)
    const deleted = await call(service.base, "DELETE", `/api/identities/${handle}`, { token: session })
    await run("drop function leave cascade")
    expect([deleted.status, deleted.body]).toEqual([202, { ...before, status: "deleting" }])
    expect((await read()).status).toBe(404)
  })

  it("is deleted in reverse order, its key rejected, its name reserved", async () => {
    const { session } = await signUp(service.base)
    const { handle, identity, secrets } = await makeIdentity(service.base, session)
    const deleted = await call(service.base, "DELETE", `/api/identities/${handle}`, { token: session })
    expect(deleted.status).toBe(202)
    expect(deleted.body.status).toBe("deleting")
    await eventually(
      () => call(service.base, "GET", `/api/identities/${handle}`, { token: session }),
      ({ status }) => status === 404,
    )
    expect((await call(service.base, "GET", "/api/auth/whoami", { token: secrets.identity_key })).status).toBe(401)
    const repeated = await call(service.base, "POST", "/api/identities", {
      token: session,
      body: { handle: handle.toUpperCase() },
    })
    expect([repeated.status, repeated.body.code]).toEqual([409, "handle_taken"])
    const events = await eventually(
      () => call(service.base, "GET", "/api/events?type=identity.deleted", { token: session }),
      ({ body }) => body.events.length === 1,
    )
    expect(events.body.events[0]).toMatchObject({
      identity_id: null,
      handle: null,
      data: { identity_id: identity.id, handle },
    })
    const remaining = await service.query((sql) => sql`select 1 from event where identity_id = ${identity.id}`)
    expect(remaining).toEqual([])
  })
})

describe("Handle check", () => {
  it("reports the reasons for which create would fail, without an error", async () => {
    const { session } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, session)
    const check = async (name: string) =>
      (await call(service.base, "GET", `/api/handles/${name}`, { token: session })).body
    expect(await check(newHandle())).toMatchObject({ available: true })
    expect(await check(handle.replace("x", "-x"))).toMatchObject({ available: false, code: "handle_taken" })
    expect(await check("postmaster")).toMatchObject({ available: false, code: "handle_reserved" })
    expect(await check("a-b")).toMatchObject({ available: false, code: "handle_invalid" })
    for (const [name, status, code] of [
      ["a-b", 400, "handle_invalid"],
      ["open-ai", 409, "handle_reserved"],
      [handle, 409, "handle_taken"],
    ] as const) {
      const refused = await call(service.base, "POST", "/api/identities", { token: session, body: { handle: name } })
      expect([refused.status, refused.body.code]).toEqual([status, code])
    }
  })

  it("accepts any text, with `handle_invalid` if create would reject it", async () => {
    const { session } = await signUp(service.base)
    const texts = [
      "x".repeat(63),
      "x".repeat(64),
      "x".repeat(300),
      "x".repeat(8000),
      "a\0b",
      "@someone",
      "ä".repeat(500),
      "Ab",
    ]
    for (const text of texts) {
      const isValid = text.length === 63
      const path = `/api/handles/${encodeURIComponent(text)}`
      const { status, body } = await call(service.base, "GET", path, { token: session })
      expect([status, body.available, body.code], text).toEqual([200, isValid, isValid ? undefined : "handle_invalid"])
      if (isValid) continue
      const refused = await call(service.base, "POST", "/api/identities", { token: session, body: { handle: text } })
      expect([refused.status, refused.body.code, refused.body.detail], text).toEqual([
        400,
        "handle_invalid",
        body.detail,
      ])
    }
    const lone = await call(service.base, "POST", "/api/identities", { token: session, body: '{"handle":"a\\ud800b"}' })
    expect(lone.body.code).toBe("handle_invalid")
  })
})

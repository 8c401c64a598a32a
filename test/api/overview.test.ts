/** `GET /api/overview` over HTTP: what needs a person, whose it is, and the activity of the last days. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { insertSignIn } from "../harness/SignIns.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session = ""
let stranger = ""
let ada: Awaited<ReturnType<typeof makeIdentity>>
let bob: Awaited<ReturnType<typeof makeIdentity>>

beforeAll(async () => {
  service = await startService({ env: { SVC_LIMIT_MAIL_HOURLY: "5" } })
  session = (await signUp(service.base)).session
  stranger = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
  bob = await makeIdentity(service.base, session)
})
afterAll(() => service.stop())

const read = (token = session) => call(service.base, "GET", "/api/overview", { token })
/** Returns the needs of the account, after a check that another account has none of them. */
const needs = async () => {
  expect((await read(stranger)).body.needs).toEqual([])
  return (await read()).body.needs
}
const api = (method: string, at: string, body?: unknown) =>
  call(service.base, method, at, { token: session, ...(body === undefined ? {} : { body }) })

describe("GET /api/account/mail", () => {
  it("lists the Identities whose outgoing mail is stopped", async () => {
    const stopped = async () => (await api("GET", "/api/account/mail")).body
    expect(await stopped()).toEqual({ stopped: [] })
    await api("PATCH", `/api/identities/${bob.handle}/mail`, { outgoing: "stopped" })
    expect(await stopped()).toEqual({ stopped: [bob.handle] })
    expect((await call(service.base, "GET", "/api/account/mail", { token: stranger })).body).toEqual({ stopped: [] })
    await api("PATCH", `/api/identities/${bob.handle}/mail`, { outgoing: "active" })
    expect(await stopped()).toEqual({ stopped: [] })
  })
})

describe("GET /api/overview", () => {
  it("has no needs if everything is fine", async () => {
    const { status, body } = await read()
    expect(status).toBe(200)
    expect(body.needs).toEqual([])
    expect(Date.parse(body.ends_at) - Date.parse(body.starts_at)).toBe(14 * 86_400_000)
    expect(body.identities.map(({ handle }: { handle: string }) => handle).toSorted()).toEqual(
      [ada.handle, bob.handle].toSorted(),
    )
    expect(body.events.map(({ type }: { type: string }) => type)).toContain("identity.ready")
  })

  it("lists a message that waits for approval until it is decided", async () => {
    const at = `/api/identities/${ada.handle}`
    await api("PATCH", `${at}/mail`, { approval: "required" })
    await api("POST", `${at}/allowed-recipients`, { address: "grace@example.org" })
    const sent = await call(service.base, "POST", `${at}/messages/send`, {
      token: ada.secrets.identity_key,
      body: { to: ["grace@example.org"], subject: "Offer", text: "10 %" },
    })
    expect(await needs()).toMatchObject([
      { kind: "approval", identity: ada.handle, id: sent.body.id, name: "Offer", reason: null },
    ])
    await api("POST", `${at}/approvals/${sent.body.id}/refuse`, { reason: "no" })
    expect(await needs()).toEqual([])
  })

  it("lists a sign-in that waits for approval until it is decided or expires", async () => {
    const [waiting] = await service.query((sql) => insertSignIn(sql, ada.handle))
    await service.query((sql) => insertSignIn(sql, ada.handle, { expires: "-1 second" }))
    expect(await needs()).toMatchObject([
      { kind: "sign_in", identity: ada.handle, id: waiting!.id, name: "shop.example", reason: null },
    ])
    const { status } = await api("POST", `/api/identities/${ada.handle}/sign-ins/${waiting!.id}/refuse`)
    expect([status, await needs()]).toEqual([200, []])
  })

  it("lists a Webhook while its latest deliveries all fail", async () => {
    const made = await api("POST", `/api/identities/${ada.handle}/webhooks`, {
      url: "https://hook.example.com/",
      event_types: ["email.sent"],
    })
    const failing = { kind: "webhook", identity: ada.handle, id: made.body.id, name: "https://hook.example.com/" }
    const add = (status: string, attempt: object | undefined) =>
      service.query(
        (sql) => sql`
          insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, attempts, created_at)
          select uuidv7(), w.id, w.identity_id, uuidv7(), 'email.sent', ${status},
                 ${JSON.stringify(attempt === undefined ? [] : [attempt])}::jsonb, now()
          from webhook w join identity i on i.id = w.identity_id where i.handle = ${ada.handle}`,
      )
    await add("failed", { error: null, status_code: 503 })
    await add("queued", undefined)
    expect(await needs()).toMatchObject([{ ...failing, reason: "HTTP 503" }])
    await add("retrying", { error: "timeout", status_code: null })
    expect(await needs()).toMatchObject([{ ...failing, reason: "timeout" }])
    for (const status of ["disabled", "active"]) {
      await api("PATCH", `/api/identities/${ada.handle}/webhooks/${made.body.id}`, { status })
      expect(await needs()).toHaveLength(status === "active" ? 1 : 0)
    }
    await add("delivered", { error: null, status_code: 204 })
    expect(await needs()).toEqual([])
    // One failure beside deliveries is retried, and needs nobody.
    await add("retrying", { error: "timeout", status_code: null })
    expect(await needs()).toEqual([])
  })

  it("lists keys that expire within a week, failed provisioning and limits that are nearly used", async () => {
    const soon = await api("POST", "/api/keys", {
      name: "laptop",
      expires_at: new Date(Date.now() + 6 * 86_400_000).toISOString(),
    })
    await api("POST", "/api/keys", { name: "server", expires_at: new Date(Date.now() + 8 * 86_400_000).toISOString() })
    const past = await api("POST", "/api/keys", { name: "past", expires_in_days: 1 })
    await service.query((sql) => sql`update api_key set expires_at = now() where id = ${past.body.api_key.id}`)
    expect(await needs()).toMatchObject([
      { kind: "key", identity: null, id: soon.body.api_key.id, name: "laptop", at: soon.body.api_key.expires_at },
    ])
    // A key that was rotated ends soon, and needs nobody: its successor is in use.
    const { body } = await api("POST", `/api/keys/${soon.body.api_key.id}/rotate`, { overlap_seconds: 3_600 })
    expect((await needs()).map(({ id }: { id: string }) => id)).toEqual([body.api_key.id])
    for (const id of [soon.body.api_key.id, body.api_key.id]) await api("DELETE", `/api/keys/${id}`)
    expect(await needs()).toEqual([])
    await service.query(
      (sql) =>
        sql`insert into mail_use (identity_id, at) select id, now() from identity, generate_series(1, 4) where handle = ${bob.handle}`,
    )
    expect(await needs()).toEqual([
      { kind: "limit", identity: bob.handle, id: null, name: "mail_hourly", reason: null, at: null },
    ])
    await service.query(
      (sql) => sql`
        update identity set saga = jsonb_set(jsonb_set(saga, '{status}', '"failed"'), '{steps,0,status}', '"failed"')
        where handle = ${bob.handle}`,
    )
    const [provisioning, limit] = await needs()
    expect(provisioning).toMatchObject({ kind: "provisioning", identity: bob.handle, id: null })
    expect(provisioning.name).toMatch(/^\w+$/)
    expect(limit.kind).toBe("limit")
  })

  it("has the activity of each day and the newest message of the busiest Identities first", async () => {
    for (const subject of ["First", "Hi", "Draft"]) {
      await send(service.smtpPort, {
        from: "grace@example.org",
        to: `${bob.handle}@mail.localhost`,
        subject,
        text: "",
      })
      await eventually(
        () => read(),
        ({ body }) => body.identities.some(({ latest_message }: any) => latest_message?.subject === subject),
      )
    }
    // A draft that a mail program shows is a message of its folder.
    await service.query((sql) => sql`update message set is_draft = true where summary ->> 'subject' = 'Draft'`)
    await service.query(
      (sql) => sql`
        insert into usage_hour (org_id, identity_id, hour, kind, count, failed, bytes_in, bytes_out)
        select org_id, case when part = 1 then id end, date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - interval '3 days',
               'mail_sent', case when handle = ${bob.handle} then 1000 else 1 end, 0, 0, 0
        from identity, generate_series(1, 2) as part
        where handle = ${bob.handle} or handle = ${ada.handle} and part = 1`,
    )
    const { identities, series } = (await read()).body
    expect(identities[0]).toMatchObject({
      handle: bob.handle,
      status: "ready",
      tunnel_connected: false,
      latest_message: { subject: "Hi", from: "grace@example.org" },
    })
    expect(identities[0].activity).toHaveLength(14)
    expect(identities[0].activity[10]).toBe(1000)
    expect(series.find(({ metric }: any) => metric === "mail_sent").points).toContainEqual({
      at: expect.any(String),
      value: 1000,
    })
    expect(series.filter(({ metric }: any) => metric === "activity")).toEqual([])
  })

  it("is for the account holder only, and shows nothing of another account", async () => {
    const key = await api("POST", "/api/keys", { name: "admin" })
    for (const token of [ada.secrets.identity_key, key.body.key]) {
      expect((await read(token)).status).toBe(403)
    }
    const { body } = await read((await signUp(service.base)).session)
    expect([body.needs, body.series.flatMap(({ points }: any) => points), body.identities]).toEqual([[], [], []])
    expect(JSON.stringify(body.events)).not.toContain(ada.handle)
  })
})

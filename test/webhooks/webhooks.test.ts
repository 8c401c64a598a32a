import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

const register = (handle: string, body: unknown, token = session) =>
  call(service.base, "POST", `/api/identities/${handle}/webhooks`, { token, body })
const log = async (handle: string, id: string) =>
  (await call(service.base, "GET", `/api/identities/${handle}/webhooks/${id}/deliveries`, { token: session })).body
    .deliveries
const mail = (handle: string, subject = "hello") =>
  send(service.smtpPort, { from: "grace@example.org", to: `${handle}+tag@mail.localhost`, subject, text: "x" })

describe("a Webhook", () => {
  it("receives a signed envelope for subscribed Events, and its log shows the delivery", async () => {
    const receiver = await startReceiver()
    const { handle, identity, secrets } = await makeIdentity(service.base, session)
    const made = await register(handle, { url: receiver.url, event_types: ["email.received"] }, secrets.identity_key)
    expect(made.status).toBe(201)
    expect(made.body).toMatchObject({
      url: receiver.url,
      event_types: ["email.received"],
      status: "active",
      description: null,
    })
    expect(made.headers.get("location")).toBe(`/api/identities/${handle}/webhooks/${made.body.id}`)
    await mail(handle)
    await eventually(
      async () => receiver.got.length,
      (n) => n === 1,
    )
    const [one] = receiver.got
    receiver.verify(made.body.signing_secret, one!)
    expect(() => receiver.verify(made.body.signing_secret, { ...one!, raw: `${one!.raw} ` })).toThrow()
    expect(one!.headers["webhook-id"]).toBe(one!.body.id)
    expect(one!.headers["user-agent"]).toBe("svc-webhooks/0.1.0")
    expect(one!.body).toMatchObject({
      type: "email.received",
      identity: { id: identity.id, handle },
      data: { tag: "tag", subject: "hello", origin: { verdict: expect.any(String) } },
    })
    expect(one!.body.request_id).toMatch(/^req_/)
    const [delivery] = await eventually(
      () => log(handle, made.body.id),
      ([entry]) => entry?.status === "delivered",
    )
    expect(delivery).toMatchObject({
      event_id: one!.body.id,
      event_type: "email.received",
      replay: false,
      next_attempt_at: null,
    })
    expect(delivery.attempts).toMatchObject([{ number: 1, status_code: 200, error: null }])
    await receiver.stop()
  })

  it("shares the Identity's secret with the next one", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const one = await register(handle, { url: "http://127.0.0.1:9/", event_types: ["*"] })
    const two = await register(handle, { url: "http://127.0.0.1:9/", event_types: ["*"], description: "second" })
    expect(two.body.signing_secret).toBe(one.body.signing_secret)
    const list = await call(service.base, "GET", `/api/identities/${handle}/webhooks`, { token: session })
    expect(list.body.webhooks.map(({ description }: { description: string }) => description)).toEqual([null, "second"])
    expect(JSON.stringify(list.body)).not.toContain("whsec_")
  })

  it("is one of at most 100 of an Identity, also if more are registered at the same time", async () => {
    const { handle, identity } = await makeIdentity(service.base, session)
    await service.query(
      (sql) => sql`
        insert into webhook (id, identity_id, url, event_types, created_at)
        select uuidv7(), ${identity.id}, 'http://127.0.0.1:9/' || n, '{mail.stopped}', now() from generate_series(1, 99) n`,
    )
    const body = { url: "http://127.0.0.1:9/", event_types: ["mail.stopped"] }
    const made = await Promise.all(Array.from({ length: 4 }, () => register(handle, body)))
    expect(made.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409])
    expect((await register(handle, body)).body).toMatchObject({
      code: "conflict",
      detail: expect.stringContaining("at most 100"),
    })
  })

  it("subscribes only to Event types of an Identity, with an http(s) target", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const wrong = await register(handle, { url: "https://example.org/", event_types: ["identity.deleted"] })
    expect([wrong.status, wrong.body.code]).toEqual([400, "invalid_request"])
    for (const url of ["ftp://example.org/", "http://u:p@127.0.0.1/", "nonsense"]) {
      const refused = await register(handle, { url, event_types: ["*"] })
      expect([refused.status, refused.body.code]).toEqual([400, "webhook_target_refused"])
    }
  })
})

describe("replay", () => {
  it("queues a new delivery of the same Event, subscribed or not", async () => {
    const receiver = await startReceiver()
    const { handle } = await makeIdentity(service.base, session)
    const { body } = await register(handle, { url: receiver.url, event_types: ["email.sent"] })
    await mail(handle)
    const event = (
      await eventually(
        () => call(service.base, "GET", `/api/events?type=email.received&handle=${handle}`, { token: session }),
        (answer) => answer.body.events.length === 1,
      )
    ).body.events[0]
    expect(receiver.got).toHaveLength(0)
    const replay = (id: string, webhook_id: unknown) =>
      call(service.base, "POST", `/api/events/${id}/replay`, { token: session, body: { webhook_id } })
    const first = await replay(event.id, body.id)
    expect(first.status).toBe(202)
    expect(first.body.delivery).toMatchObject({ event_id: event.id, replay: true })
    expect(first.headers.get("location")).toBe(`/api/identities/${handle}/webhooks/${body.id}/deliveries`)
    await replay(event.id, body.id)
    await eventually(
      async () => receiver.got.length,
      (n) => n === 2,
    )
    expect(new Set(receiver.got.map((one) => one.body.id))).toEqual(new Set([event.id]))
    expect(new Set(receiver.got.map((one) => one.body.request_id)).size).toBe(2)

    const other = await makeIdentity(service.base, session)
    const elsewhere = await register(other.handle, { url: receiver.url, event_types: ["*"] })
    const mismatch = await replay(event.id, elsewhere.body.id)
    expect([mismatch.status, mismatch.body.code]).toEqual([409, "webhook_mismatch"])
    const unknown = await replay(event.id, "wh_00000000000000000000000000")
    expect([unknown.status, unknown.body.code]).toEqual([404, "not_found"])
    const orgLevel = (await call(service.base, "GET", "/api/events?type=api_key.created", { token: session })).body
      .events[0]
    const none = await replay(orgLevel.id, body.id)
    expect([none.status, none.body.code]).toEqual([409, "webhook_mismatch"])
    await receiver.stop()
  })
})

describe("the list of Events", () => {
  it("filters by type and Handle within the Org", async () => {
    const owner = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner.session)
    const list = (query: string, token = owner.session) => call(service.base, "GET", `/api/events?${query}`, { token })
    const ready = await eventually(
      () => list(`handle=${handle.toUpperCase()}`),
      ({ body }) => body.events.length === 1,
    )
    expect(ready.body.events[0]).toMatchObject({ type: "identity.ready", handle })
    expect((await list("handle=nobodyhasthis")).status).toBe(404)
    expect((await list("type=no.such")).status).toBe(400)
    const stranger = await signUp(service.base)
    expect((await list(`handle=${handle}`, stranger.session)).status).toBe(404)
    const one = await call(service.base, "GET", `/api/events/${ready.body.events[0].id}`, { token: stranger.session })
    expect(one.status).toBe(404)
  })
})

describe("the API of an Identity's Webhooks and keys", () => {
  let handle: string
  let key: string
  beforeAll(async () => {
    const made = await makeIdentity(service.base, session)
    handle = made.handle
    key = made.secrets.identity_key
  })
  const at = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    call(service.base, method, `/api/identities/${handle}${path}`, {
      token: session,
      headers,
      ...(body === undefined ? {} : { body }),
    })
  const hook = async (url: string, event_types = ["mail.stopped"]) =>
    (await at("POST", "/webhooks", { url, event_types })).body
  const deliveries = (id: string) => log(handle, id)

  it("returns a Webhook, changes it under conditions, and removes it with its log", async () => {
    const other = await hook("http://127.0.0.1:9/other")
    const { id } = await hook("http://127.0.0.1:9/")
    const read = await at("GET", `/webhooks/${id}`)
    expect(read.body).not.toHaveProperty("signing_secret")
    expect(read.headers.get("etag")).toBe('"v1"')
    const changed = await at("PATCH", `/webhooks/${id}`, { description: "new", event_types: ["*", "*"] })
    expect(changed.body).toMatchObject({ description: "new", event_types: ["*"], url: "http://127.0.0.1:9/" })
    expect((await at("PATCH", `/webhooks/${id}`, { description: "x" }, { "if-match": '"v1"' })).status).toBe(412)
    expect(
      (await at("PATCH", `/webhooks/${id}`, { description: null }, { "if-match": '"v2"' })).body.description,
    ).toBeNull()
    expect((await at("PATCH", `/webhooks/${id}`, { url: "nonsense" })).body.code).toBe("webhook_target_refused")
    expect((await at("PATCH", `/webhooks/${id}`, { event_types: ["identity.deleted"] })).status).toBe(400)
    expect((await at("DELETE", `/webhooks/${id}`, undefined, { "if-match": '"v2"' })).status).toBe(412)
    expect((await at("DELETE", `/webhooks/${id}`)).status).toBe(204)
    expect((await at("GET", `/webhooks/${id}`)).status).toBe(404)
    expect((await at("GET", `/webhooks/${other.id}`)).body.url).toBe("http://127.0.0.1:9/other")
    expect((await at("POST", `/webhooks/${id}/test`)).status).toBe(404)
    expect((await at("GET", `/webhooks/${id}/deliveries`)).status).toBe(404)
    expect((await at("DELETE", `/webhooks/${id}`)).status).toBe(404)
    const patch = { description: "x" }
    expect((await at("PATCH", `/webhooks/${id}`, patch)).status).toBe(404)
    expect((await at("PATCH", `/webhooks/${id}`, patch, { "if-match": '"v2"' })).status).toBe(412)
  })

  it("tests a Webhook with an Event that is in no list", async () => {
    const receiver = await startReceiver()
    const { id, signing_secret } = await hook(receiver.url)
    const test = await at("POST", `/webhooks/${id}/test`)
    expect(test.status).toBe(202)
    expect(test.body.delivery).toMatchObject({ event_type: "webhook.test" })
    await eventually(
      async () => receiver.got.length,
      (count) => count > 0,
    )
    expect(receiver.verify(signing_secret, receiver.got[0]!)).toMatchObject({ type: "webhook.test", data: {} })
    const { body } = await call(service.base, "GET", "/api/events", { token: session })
    expect(body.events.map(({ type }: any) => type)).not.toContain("webhook.test")
    const one = await call(service.base, "GET", `/api/events/${test.body.delivery.event_id}`, { token: session })
    expect(one.status).toBe(404)
    await receiver.stop()
  })

  it("ends the queued deliveries of a disabled Webhook and queues no more", async () => {
    const { id } = await hook("http://127.0.0.1:9/", ["mail.stopped"])
    const other = await hook("http://127.0.0.1:9/", ["mail.stopped"])
    await at("PATCH", "/mail", { outgoing: "stopped" })
    for (const one of [id, other.id]) {
      await eventually(
        () => deliveries(one),
        (found) => found[0]?.status === "retrying",
      )
    }
    expect((await at("PATCH", `/webhooks/${id}`, { status: "disabled" })).body.status).toBe("disabled")
    const [ended] = await deliveries(id)
    expect(ended).toMatchObject({ status: "failed", next_attempt_at: null })
    expect(ended.attempts.at(-1)).toMatchObject({ number: 2, error: "webhook_disabled", status_code: null })
    expect((await deliveries(other.id))[0].status).toBe("retrying")
    await at("PATCH", "/mail", { outgoing: "active" })
    await at("PATCH", "/mail", { outgoing: "stopped" })
    expect(await deliveries(id)).toHaveLength(1)
    const conflict = [
      await at("POST", `/webhooks/${id}/test`),
      await call(service.base, "POST", `/api/events/${ended.event_id}/replay`, {
        token: session,
        body: { webhook_id: id },
      }),
    ]
    expect(conflict.map(({ body }) => body.code)).toEqual(["conflict", "conflict"])
  })

  it("rotates a signing secret with an Identity Key; the former secret signs for one more day", async () => {
    const { signing_secret: former } = await hook("http://127.0.0.1:9/")
    const rotated = await call(service.base, "POST", `/api/identities/${handle}/webhook-secret/rotate`, { token: key })
    expect(rotated.status).toBe(200)
    expect(rotated.body.signing_secret).not.toBe(former)
    expect(Date.parse(rotated.body.previous_valid_until)).toBeGreaterThan(Date.now())
    expect((await hook("http://127.0.0.1:9/")).signing_secret).toBe(rotated.body.signing_secret)
  })

  it("signs with at most ten secrets, so that rotations do not enlarge the header beyond what receivers accept", async () => {
    const receiver = await startReceiver()
    const { id, signing_secret: former } = await hook(receiver.url)
    const secrets = [former]
    while (secrets.length < 12) secrets.push((await at("POST", "/webhook-secret/rotate")).body.signing_secret)
    await at("POST", `/webhooks/${id}/test`)
    const [one] = await eventually(
      async () => receiver.got,
      ({ length }) => length === 1,
    )
    expect(secrets.map((secret) => receiver.isSignedWith(secret, one!))).toEqual(secrets.map((_, n) => n >= 2))
    expect(String(one!.headers["webhook-signature"]).split(" ")).toHaveLength(10)
    expect((await hook(receiver.url)).signing_secret).toBe(secrets.at(-1))
    await receiver.stop()
  })

  it("rotates an Identity Key for the account: the former key stops working immediately, and the new key is shown once", async () => {
    expect(
      (await call(service.base, "POST", `/api/identities/${handle}/identity-key/rotate`, { token: key })).body.code,
    ).toBe("admin_required")
    expect((await at("POST", "/identity-key/rotate")).status).toBe(204)
    expect((await call(service.base, "GET", "/api/auth/whoami", { token: key })).status).toBe(401)
    const { body } = await at("GET", "/identity-key")
    expect(body.identity_key).toMatch(/^svc_id_/)
    expect(body.imap.password).toBeTruthy()
    const who = await call(service.base, "GET", "/api/auth/whoami", { token: body.identity_key })
    expect(who.body.caller).toMatchObject({ kind: "identity_key", handle })
    await call(service.base, "POST", `/api/identities/${handle}/identity-key/ack`, { token: body.identity_key })
    expect((await at("GET", "/identity-key")).body).toEqual({})
  })
})

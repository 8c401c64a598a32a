import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let handle: string
let key: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  key = made.secrets.identity_key
})
afterAll(() => service.stop())

const at = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  call(service.base, method, `/api/identities/${handle}${path}`, {
    token: session,
    headers,
    ...(body === undefined ? {} : { body }),
  })
const register = async (url: string, event_types = ["mail.stopped"]) =>
  (await at("POST", "/webhooks", { url, event_types })).body
const deliveries = async (id: string) => (await at("GET", `/webhooks/${id}/deliveries`)).body.deliveries

describe("a Webhook", () => {
  it("is read, changed under conditions, and removed with its log", async () => {
    const { id } = await register("http://127.0.0.1:9/")
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
    expect((await at("DELETE", `/webhooks/${id}`)).status).toBe(204)
    expect((await at("GET", `/webhooks/${id}`)).status).toBe(404)
    expect((await at("GET", `/webhooks/${id}/deliveries`)).status).toBe(404)
    expect((await at("DELETE", `/webhooks/${id}`)).status).toBe(404)
  })

  it("is tested with an Event that is in no list", async () => {
    const receiver = await startReceiver()
    const { id, signing_secret } = await register(receiver.url)
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

  it("that is disabled ends what waits for it and takes nothing more", async () => {
    const { id } = await register("http://127.0.0.1:9/", ["mail.stopped"])
    await at("PATCH", "/mail", { outgoing: "stopped" })
    await eventually(
      () => deliveries(id),
      (found) => found[0]?.status === "retrying",
    )
    expect((await at("PATCH", `/webhooks/${id}`, { status: "disabled" })).body.status).toBe("disabled")
    const [ended] = await deliveries(id)
    expect(ended).toMatchObject({ status: "failed", next_attempt_at: null })
    expect(ended.attempts.at(-1)).toMatchObject({ number: 2, error: "webhook_disabled", status_code: null })
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

  it("is signed with the former secret too for a day after a rotation", async () => {
    const receiver = await startReceiver()
    const { id, signing_secret: former } = await register(receiver.url)
    const rotated = await call(service.base, "POST", `/api/identities/${handle}/webhook-secret/rotate`, { token: key })
    expect(rotated.status).toBe(200)
    expect(rotated.body.signing_secret).not.toBe(former)
    expect(Date.parse(rotated.body.previous_valid_until) - Date.now()).toBeGreaterThan(23 * 3_600_000)
    await at("POST", `/webhooks/${id}/test`)
    await eventually(
      async () => receiver.got.length,
      (count) => count > 0,
    )
    receiver.verify(former, receiver.got[0]!)
    receiver.verify(rotated.body.signing_secret, receiver.got[0]!)
    await service.query((sql) => sql`update signing_secret set retires_at = now() where retires_at is not null`)
    await receiver.stop()
  })
})

describe("the Identity Key", () => {
  it("is rotated by the account: the former stops at once, the new one is shown once", async () => {
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

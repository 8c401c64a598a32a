import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const register = (handle: string, body: unknown, token = session) =>
  call(service.base, "POST", `/api/identities/${handle}/webhooks`, { token, body })
const log = async (handle: string, id: string) =>
  (await call(service.base, "GET", `/api/identities/${handle}/webhooks/${id}/deliveries`, { token: session })).body
    .deliveries
const mail = (handle: string, subject = "hello") =>
  send(service.smtpPort, { from: "grace@example.org", to: `${handle}+tag@mail.localhost`, subject, text: "x" })

describe("a Webhook", () => {
  it("gets a signed envelope for what it subscribed to, and the log tells", async () => {
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

  it("that fails is tried again by the table, and each attempt is in the log", async () => {
    const receiver = await startReceiver((response) => response.writeHead(500).end())
    const { handle } = await makeIdentity(service.base, session)
    const { body } = await register(handle, { url: receiver.url, event_types: ["*"] })
    await mail(handle)
    const [delivery] = await eventually(
      () => log(handle, body.id),
      ([entry]) => entry?.status === "retrying",
    )
    expect(delivery.attempts).toMatchObject([{ number: 1, status_code: 500, error: null }])
    expect(Date.parse(delivery.next_attempt_at) - Date.parse(delivery.attempts[0].started_at)).toBe(30_000)
    await receiver.stop()
  })

  it("that answers with a redirect or 410 has failed like any other", async () => {
    const receiver = await startReceiver((response) =>
      response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
    )
    const { handle } = await makeIdentity(service.base, session)
    const { body } = await register(handle, { url: receiver.url, event_types: ["email.received"] })
    await mail(handle)
    const [delivery] = await eventually(
      () => log(handle, body.id),
      ([entry]) => entry?.status === "retrying",
    )
    expect(delivery.attempts[0].status_code).toBe(302)
    await receiver.stop()
  })

  it("that refuses connections fails with a word, and the sixth failure's successor is the last", async () => {
    const { handle, identity } = await makeIdentity(service.base, session)
    const receiver = await startReceiver()
    const watcher = await register(handle, { url: receiver.url, event_types: ["webhook.failed"] })
    const { body } = await register(handle, { url: "http://127.0.0.1:9/", event_types: ["*"] })
    await mail(handle)
    const path = (deliveries: any) => deliveries.find(({ event_type }: any) => event_type === "email.received")
    for (let attempt = 1; attempt <= 7; attempt++) {
      const delivery = await eventually(
        async () => path(await log(handle, body.id)),
        (entry) => entry?.attempts.length === attempt && entry.status !== "queued",
      )
      expect(delivery.attempts.at(-1)).toMatchObject({ number: attempt, status_code: null, error: "connection" })
      if (attempt === 7) {
        expect(delivery).toMatchObject({ status: "failed", next_attempt_at: null })
        break
      }
      const waits = [30, 300, 1800, 7200, 21_600, 86_400]
      expect(Date.parse(delivery.next_attempt_at) - Date.parse(delivery.attempts.at(-1).started_at)).toBe(
        waits[attempt - 1]! * 1000,
      )
      // The wait is in the row: moving it into the past is all that passing time would do. `Overdue` finds it.
      await service.query(
        (sql) =>
          sql`update delivery set next_attempt_at = now() - interval '10 seconds' where identity_id = ${identity.id} and status = 'retrying'`,
      )
    }
    await eventually(
      async () => receiver.got.length,
      (n) => n === 1,
      20,
    )
    receiver.verify(watcher.body.signing_secret, receiver.got[0]!)
    expect(receiver.got[0]!.body).toMatchObject({
      type: "webhook.failed",
      data: { webhook_id: body.id, attempts: 7, error: "connection" },
    })
    await receiver.stop()
  }, 60_000)

  it("that hangs does not hold up another", async () => {
    const hanging = await startReceiver(() => {})
    const { handle } = await makeIdentity(service.base, session)
    await register(handle, { url: hanging.url, event_types: ["email.received"] })
    const good = await startReceiver()
    await register(handle, { url: good.url, event_types: ["email.received"] })
    for (let i = 0; i < 8; i++) await mail(handle, String(i))
    await eventually(
      async () => good.got.length,
      (n) => n === 8,
    )
    expect(good.got.map(({ body }) => Number(body.data.subject)).toSorted((a, b) => a - b)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7,
    ])
    // Four at a time per Webhook.
    expect(hanging.got).toHaveLength(4)
    await hanging.stop()
    await good.stop()
  })

  it("subscribes only to what concerns an Identity, at an http(s) target", async () => {
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
  it("makes a fresh delivery of the same Event, subscribed or not", async () => {
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
  it("reaches every one by paging backwards, whatever is added meanwhile", async () => {
    const owner = await signUp(service.base)
    const names = Array.from({ length: 7 }, (_, i) => `key ${i}`)
    const mint = (name: string) => call(service.base, "POST", "/api/keys", { token: owner.session, body: { name } })
    for (const name of names) await mint(name)
    const seen: Array<string> = []
    let cursor: string | null = ""
    await eventually(
      () => call(service.base, "GET", "/api/events", { token: owner.session }),
      ({ body }) => body.events.length === 7,
    )
    while (cursor !== null) {
      const { body }: any = await call(
        service.base,
        "GET",
        `/api/events?limit=3${cursor === "" ? "" : `&cursor=${cursor}`}`,
        { token: owner.session },
      )
      seen.push(...body.events.map((event: any) => event.data.name))
      cursor = body.next_cursor
      await mint("later")
    }
    expect(seen).toEqual(names.toReversed())
  })

  it("filters by type and handle, and knows only its own", async () => {
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

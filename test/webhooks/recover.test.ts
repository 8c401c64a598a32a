/** Finding out why an Event was not delivered: the Webhook's responses, the request body, and replays of failed deliveries. */
import { fromPublic } from "@svc/domain/Ids"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let answer: { status: number; body: string | Buffer } = { status: 200, body: "" }
let receiver: Awaited<ReturnType<typeof startReceiver>>
let token: string
let handle: string
let at: string
let webhook: string

beforeAll(async () => {
  service = await sharedService()
  receiver = await startReceiver((response) => {
    response.statusCode = answer.status
    response.end(answer.body)
  })
  token = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, token)).handle
  const made = await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
    token,
    body: { url: receiver.url, event_types: ["card.updated"] },
  })
  webhook = made.body.id
  at = `/api/identities/${handle}/webhooks/${webhook}`
})
afterAll(async () => {
  await receiver.stop()
})

const deliveries = (query = "") => call(service.base, "GET", `${at}/deliveries${query}`, { token })

let version = 1
/** Changes the card, and returns the delivery of that Event and its response. */
const delivered = async (status: number, body: string | Buffer) => {
  answer = { status, body }
  await call(service.base, "PATCH", `/api/identities/${handle}/card`, { token, body: { version: `1.${version++}` } })
  const { body: log } = await eventually(
    () => deliveries("?limit=1"),
    ({ body }) => body.deliveries[0]?.attempts.length === 1 && body.deliveries.length === 1,
  )
  return log.deliveries[0]
}

describe("an attempt", () => {
  it.each([
    ["as it is", "database is locked", "database is locked"],
    ["null where there is none", "", null],
    ["its first KiB", "x".repeat(5000), "x".repeat(1024)],
    ["without a letter that was cut", "ä".repeat(511) + "xä", "ä".repeat(511) + "x"],
    ["without what no store takes", Buffer.from([0x61, 0x00, 0xff, 0x62]), "a\uFFFD\uFFFDb"],
  ])("keeps the body of its answer: %s", async (_, body, kept) => {
    const { attempts } = await delivered(500, body)
    expect(attempts[0]).toMatchObject({ status_code: 500, response_body: kept })
    await service.query((sql) => sql`update delivery set status = 'failed', next_attempt_at = null`)
  })
})

describe("the log", () => {
  it("is filtered by status and by Event", async () => {
    const well = await delivered(204, "")
    expect((await deliveries("?status=delivered")).body.deliveries.map(({ id }: any) => id)).toEqual([well.id])
    expect((await deliveries(`?event_id=${well.event_id}`)).body.deliveries).toHaveLength(1)
    expect((await deliveries("?status=nothing")).status).toBe(400)
    expect((await deliveries("?event_id=evt_nothing")).status).toBe(400)
    // A cursor is valid only for the list that returned it.
    const { next_cursor } = (await deliveries("?status=failed&limit=2")).body
    expect((await deliveries(`?status=failed&limit=2&cursor=${next_cursor}`)).body.deliveries).toHaveLength(2)
    expect((await deliveries(`?limit=2&cursor=${next_cursor}`)).status).toBe(400)
  })

  it("shows the request of a delivery as it was sent, without its signature", async () => {
    const { id, event_id } = (await deliveries("?status=delivered")).body.deliveries[0]
    const { body: request } = await call(service.base, "GET", `${at}/deliveries/${id}/request`, { token })
    const sent = receiver.got.find(({ body }) => body.id === event_id)!
    expect(request).toMatchObject({ method: "POST", url: receiver.url })
    expect(request.headers).toMatchObject({ "webhook-id": event_id, "content-type": "application/json" })
    expect(request.headers).not.toHaveProperty("webhook-signature")
    expect(request.body).toBe(sent.raw)
    expect(request.headers["webhook-timestamp"]).toBe(sent.headers["webhook-timestamp"])
    const other = (await signUp(service.base)).session
    const path = `${at}/deliveries/${id}/request`
    expect((await call(service.base, "GET", path, { token: other })).status).toBe(404)
    expect((await call(service.base, "GET", `${at}/deliveries/dlv_none/request`, { token })).status).toBe(400)
    const made = await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token,
      body: { url: receiver.url, event_types: ["mail.stopped"] },
    })
    const unknown = { status: 404, body: { code: "not_found", detail: "The delivery does not exist." } }
    for (const other of [
      path.replace(webhook, made.body.id),
      path.replace(id, id.slice(0, -1) + (id.endsWith("a") ? "b" : "a")),
    ]) {
      expect(await call(service.base, "GET", other, { token })).toMatchObject(unknown)
    }
  })
})

describe("recovering", () => {
  it("repeats every Event whose latest delivery failed since a time, oldest first, and none of them twice", async () => {
    // A test Event that failed is not repeated.
    const tested = await call(service.base, "POST", `${at}/test`, { token })
    expect(tested.status).toBe(202)
    // Its attempt would record another outcome.
    await eventually(
      () => deliveries("?status=delivered&limit=200"),
      ({ body }) => body.deliveries.some(({ event_type }: any) => event_type === "webhook.test"),
    )
    await service.query(
      (sql) => sql`update delivery set status = 'failed', next_attempt_at = null where event_type = 'webhook.test'`,
    )
    answer = { status: 200, body: "" }
    const failed = (await deliveries("?status=failed&limit=200")).body.deliveries.filter(
      ({ event_type }: any) => event_type !== "webhook.test",
    )
    expect(failed.length).toBeGreaterThan(1)
    // Neither is an Event that another Webhook did not receive.
    const neighbour = await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token,
      body: { url: receiver.url, event_types: ["mail.stopped"] },
    })
    await service.query(
      (sql) => sql`
        insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, created_at)
        select uuidv7(), ${fromPublic("wh_", neighbour.body.id)!}::uuid, identity_id, id, type, 'failed', now()
        from event where handle = ${handle} and type = 'identity.ready'`,
    )
    const before = receiver.got.length
    const since = new Date(Date.now() - 3_600_000).toISOString()
    const recover = (since: string) => call(service.base, "POST", `${at}/recover`, { token, body: { since } })
    expect((await recover(new Date(Date.now() + 60_000).toISOString())).body).toEqual({ queued: 0 })
    const done = await recover(since)
    expect([done.status, done.body]).toEqual([202, { queued: failed.length }])
    expect(done.headers.get("location")).toBe(`${at}/deliveries`)
    await eventually(
      () => Promise.resolve(receiver.got.length),
      (got) => got === before + failed.length,
    )
    expect(
      receiver.got
        .slice(before)
        .map(({ body }) => body.id)
        .toSorted(),
    ).toEqual(failed.map(({ event_id }: any) => event_id).toSorted())
    const repeated = (await deliveries("?limit=200")).body.deliveries.filter(({ replay }: any) => replay)
    expect(repeated.map(({ event_id }: any) => event_id)).toEqual(failed.map(({ event_id }: any) => event_id))
    expect((await recover(since)).body).toEqual({ queued: 0 })
  })

  it("is refused for a disabled Webhook, and for a Webhook of another account", async () => {
    await call(service.base, "PATCH", at, { token, body: { status: "disabled" } })
    const body = { since: new Date(0).toISOString() }
    expect((await call(service.base, "POST", `${at}/recover`, { token, body })).body.code).toBe("conflict")
    const other = (await signUp(service.base)).session
    expect((await call(service.base, "POST", `${at}/recover`, { token: other, body })).status).toBe(404)
    expect((await call(service.base, "POST", `${at}/recover`, { token, body: { since: "yesterday" } })).status).toBe(
      400,
    )
  })
})

/** Webhooks, without a browser: what is requested, which Webhook is changed, and why a delivery failed. */
import { identityEventTypes } from "@svc/domain/events/Event"
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { default: NewWebhookPage } = await source("webhooks/NewWebhookPage.tsx")
const { default: WebhooksPage } = await source("webhooks/WebhooksPage.tsx")
const { default: WebhookPage } = await source("webhooks/WebhookPage.tsx")
const { DeliveryItem, whyOf } = await source("webhooks/DeliveryItem.tsx")
const { client } = await source("client/Queries.ts")
const { Toasts } = await source("ui/Toast.tsx")

const at = "/api/identities/ada/webhooks"
let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  entries = await browserAt("/identities/ada/webhooks/wh_1")
  const identity = { handle: "ada", status: "ready", tunnel: { url: "https://ada.example" } }
  client.setQueryData(["GET /api/identities/:handle", { params: { handle: "ada" } }], identity)
})
afterEach(leavePage)
const answered = (status: number, body?: object) => calls.answered(status, body)

describe("A new Webhook", () => {
  it("gets all Events unless a person chooses some, and shows its secret until that is stored", async () => {
    const { enter, press, submit, button, top } = await drawn(NewWebhookPage, { handle: "ada" })
    await press("Use the tunnel URL")
    expect(button("Use the tunnel URL")).toBeUndefined()
    await enter("Description", "  ")
    await submit()
    const request = await answered(201, { id: "wh_9", signing_secret: "whsec_secret" })
    expect([request.method, request.url, request.body]).toEqual([
      "POST",
      at,
      { url: "https://ada.example/webhook", event_types: ["*"], description: null },
    ])
    await eventually(() => expect(top.textContent).toContain("whsec_•"))
    expect([top.textContent.includes("whsec_secret"), entries]).toEqual([false, []])
    await press(top.all("button").at(-1)!.textContent)
    expect(entries).toEqual(["replace /identities/ada/webhooks/wh_9"])
  })

  it("gets only chosen Events of its Identity, at least one", async () => {
    const { enter, check, submit, button, top } = await drawn(NewWebhookPage, { handle: "ada" })
    await enter("URL", " https://example.org/hook ")
    await check("All Events", false)
    const offered = top.all("code").map(({ textContent }) => textContent)
    expect(offered.toSorted()).toEqual(identityEventTypes.toSorted())
    expect(button("Create Webhook")!.attributes["disabled"]).toBe("true")
    await check("email.received", true)
    await check("email.sent", true)
    await check("email.received", false)
    expect(button("Create Webhook")!.attributes["disabled"]).toBeUndefined()
    await submit()
    expect((await calls.next()).body).toMatchObject({ url: "https://example.org/hook", event_types: ["email.sent"] })
  })
})

describe("A Webhook", () => {
  const webhook = {
    id: "wh_1",
    url: "https://example.org/hook",
    event_types: ["email.received", "email.sent"],
    description: "Orders",
    status: "active",
    stopped_reason: null,
    failing_since: null,
    created_at: "2026-11-20T08:00:00Z",
  }
  const opened = async (more: object = {}, filter = "", deliveries: ReadonlyArray<object> = []) => {
    const key = ["GET /api/identities/:handle/webhooks/:id", { params: { handle: "ada", id: "wh_1" } }]
    client.setQueryData(key, { ...webhook, ...more })
    const shown = await drawn(WebhookPage, { handle: "ada", id: "wh_1" })
    const read = await calls.next()
    expect(read.url).toBe(`${at}/wh_1/deliveries?limit=50${filter}`)
    await act(async () => read.answer(200, { deliveries, next_cursor: null }))
    return shown
  }

  it("is changed with its present members", async () => {
    const { press, check, submit, enter, top } = await opened()
    await press("Edit")
    await check("email.sent", false)
    await enter("Description", " New ")
    await submit()
    const request = await calls.next()
    expect([request.method, request.url, request.body]).toEqual([
      "PATCH",
      `${at}/wh_1`,
      { url: "https://example.org/hook", event_types: ["email.received"], description: "New" },
    ])
    expect(top.all("dialog")).toHaveLength(1)
    await act(async () => request.answer(200, {}))
    await eventually(() => expect(top.all("dialog").length).toBe(0))
  })

  it.each([
    ["failed", "&status=failed", "No results"],
    ["nonsense", "", "No deliveries yet"],
  ])("shows the deliveries of the status in its address: %s", async (status, filter, text) => {
    await browserAt(`/identities/ada/webhooks/wh_1?status=${status}`)
    const { top } = await opened({}, filter)
    await eventually(() => expect(top.textContent).toContain(text))
  })

  const revoked = "created this Webhook was revoked"
  const expired = "created this Webhook has expired"
  const narrowed = "may no longer read its Events"
  it.each([
    ["active", null, [], "Pause", "disabled", undefined],
    ["disabled", null, [], "Resume", "active", "true"],
    ["stopped", "creator_revoked", [revoked], "Resume", "active", "true"],
    ["stopped", "creator_expired", [expired], "Resume", "active", "true"],
    ["stopped", "creator_narrowed", [narrowed], "Resume", "active", "true"],
  ])("that is %s (%s) says why, and can be changed: %j %s", async (status, reason, why, name, next, disabled) => {
    const { press, button, top } = await opened({ status, stopped_reason: reason })
    expect([revoked, expired, narrowed].filter((text) => top.textContent.includes(text))).toEqual(why)
    // Only an active Webhook can be tested.
    expect(button("Send test")!.attributes["disabled"]).toBe(disabled)
    await press(name)
    expect((await calls.next()).body).toEqual({ status: next })
  })

  it.each([
    ["2026-11-19T08:00:00Z", true],
    [null, false],
  ])("whose deliveries fail since %s says so, and shows what its endpoint responded: %s", async (since, isFailing) => {
    const attempt = { number: 1, status_code: 500, error: null, response_body: "Oh", duration_ms: 5 }
    const deliveries = ["dlv_2", "dlv_1"].map((id) => ({
      id,
      event_id: "evt_1",
      event_type: "email.received",
      status: "failed",
      replay: false,
      attempts: [{ ...attempt, started_at: webhook.created_at }],
      next_attempt_at: null,
      created_at: webhook.created_at,
    }))
    const { top } = await opened({ failing_since: since }, "", deliveries)
    const heads = () => top.all({ class: "delivery-head" }).map(({ attributes }) => attributes["aria-expanded"])
    await eventually(() => expect(heads()).toEqual([String(isFailing), "false"]))
    expect(top.all({ class: "note", "data-tone": "bad" }).length).toBe(isFailing ? 1 : 0)
    // No other attempt follows the last one.
    const tones = top.all({ class: "attempts" }).flatMap((list) => list.all("li"))
    expect(tones.map(({ attributes }) => attributes["data-tone"])).toEqual(isFailing ? ["bad"] : [])
  })

  it("that does not exist says so", async () => {
    const { top } = await drawn(WebhookPage, { handle: "ada", id: "wh_1" })
    await answered(404, problem(404))
    await eventually(() => expect(top.textContent).toContain("Webhook not found"))
  })

  it("is deleted after a confirmation, and shows why it could not be tested and paused", async () => {
    const { press, top } = await opened()
    await press("Send test")
    expect((await answered(409, problem(409, { detail: "not now" }))).url).toBe(`${at}/wh_1/test`)
    await press("Pause")
    await answered(409, problem(409, { detail: "not paused" }))
    for (const reason of ["not now", "not paused"]) await eventually(() => expect(top.textContent).toContain(reason))
    await press("Delete")
    expect(calls.waiting()).toBe(0)
    await press("Delete")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", `${at}/wh_1`])
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/webhooks"]))
  })

  it("to all Events stays that when it is changed", async () => {
    const { press, submit } = await opened({ event_types: ["*"] })
    await press("Edit")
    await submit()
    expect((await calls.next()).body).toMatchObject({ event_types: ["*"] })
  })

  it.each([
    ["week", 168],
    ["month", 720],
  ])("retries what failed in the chosen period, after a confirmation, and says how much: %s", async (span, hours) => {
    const { press, enter, top } = await opened()
    await press("Retry failed deliveries")
    expect(calls.waiting()).toBe(0)
    await enter(top.all("dialog")[0]!.all("label")[0]!.textContent, span)
    await press("Retry failed deliveries")
    const { url, body } = await answered(200, { queued: 3 })
    expect(url).toBe(`${at}/wh_1/recover`)
    expect(Math.abs(Date.parse(body.since) - (Date.now() - hours * 3_600_000))).toBeLessThan(100_000)
    const toasts = await drawn(Toasts, {})
    await eventually(() => expect(toasts.top.textContent).toContain("3"))
  })
})

describe("The list of Webhooks", () => {
  it("names the Events and the state of each, and rotates their secret after a confirmation", async () => {
    const webhook = (id: string, more: object) => ({ id, url: `https://${id}.example/`, failing_since: null, ...more })
    const webhooks = [
      webhook("all", { event_types: ["*"], status: "active" }),
      webhook("some", { event_types: ["email.received", "email.sent"], status: "disabled" }),
      webhook("none", { event_types: ["email.sent"], status: "stopped" }),
      webhook("late", { event_types: ["email.sent"], status: "active", failing_since: "2026-11-20T08:00:00Z" }),
    ]
    const input = { params: { handle: "ada" }, query: { limit: 200 } }
    client.setQueryData(["GET /api/identities/:handle/webhooks", input], { webhooks, next_cursor: null })
    const { top, press } = await drawn(WebhooksPage, { handle: "ada" })
    const rows = top.all("tr").slice(1)
    expect(
      rows.map((row) => [
        row.all("a")[0]!.attributes["href"],
        row.all({ class: "status" })[0]!.attributes["data-tone"],
        ...row
          .all("td")
          .slice(1, 3)
          .map(({ textContent }) => textContent),
      ]),
    ).toEqual([
      ["/console/identities/ada/webhooks/all", "ok", "Active", "All Events"],
      ["/console/identities/ada/webhooks/some", "off", "Paused", "email.received, email.sent"],
      ["/console/identities/ada/webhooks/none", "bad", "Stopped", "email.sent"],
      ["/console/identities/ada/webhooks/late", "bad", "Failing", "email.sent"],
    ])
    await press("Rotate signing secret")
    const isRotation = ({ url }: { readonly url: string }) => url.endsWith("/webhook-secret/rotate")
    expect(calls.all.some(isRotation)).toBe(false)
    await press("Rotate signing secret")
    await eventually(() => expect(calls.all.some(isRotation)).toBe(true))
    await act(async () => calls.all.find(isRotation)!.answer(200, { signing_secret: "whsec_new" }))
    await eventually(() => expect(top.textContent).toContain("whsec_•"))
    await press("I have stored it")
    expect(top.textContent).not.toContain("whsec_•")
  })
})

describe("A delivery", () => {
  const attempt = {
    number: 1,
    status_code: 500,
    error: null,
    response_body: "Oh",
    duration_ms: 5,
    started_at: "2026-11-20T08:00:00Z",
  }
  it.each([
    [200, null, undefined],
    [299, null, undefined],
    [199, null, /199/],
    [300, null, /300/],
    [null, "timeout", /within 15 seconds/],
    [null, "refused_address", /to this address/],
    [null, "connection", /refused or interrupted/],
    [null, "dns", /host name/],
    [null, "tls", /certificate/],
    [null, "interrupted", /restart/],
    [null, "webhook_disabled", /paused/],
    [null, "creator_revoked", /was revoked/],
    [null, "creator_expired", /has expired/],
    [null, "creator_narrowed", /may not read/],
    [null, "other", /^other$/],
  ])("with the status %s and the error %s failed because of %s", (status_code, error, why) => {
    const found = whyOf({ ...attempt, status_code, error })
    if (why === undefined) expect(found).toBeUndefined()
    else expect(found).toMatch(why)
  })

  it("is resent to its own Webhook, and its request can be repeated in a shell", async () => {
    const delivery = {
      id: "dlv_1",
      event_id: "evt_1",
      event_type: "email.received",
      status: "retrying",
      replay: false,
      attempts: [attempt, { ...attempt, number: 2, status_code: null, error: "dns", response_body: null }],
      next_attempt_at: "2026-11-20T09:00:00Z",
      created_at: "2026-11-20T08:00:00Z",
    }
    const { top, fire, press } = await drawn(DeliveryItem, { handle: "ada", id: "wh_1", delivery })
    expect(top.all("ol").length).toBe(0)
    // The head of a delivery names the outcome of its last attempt.
    expect(top.textContent).toContain(whyOf(delivery.attempts[1]))
    await fire(top.all("button")[0], "click")
    const attempts = top.all("ol")[0]!.all("li")
    expect(attempts.map(({ attributes }) => attributes["data-tone"])).toEqual(["bad", "bad", "next"])
    expect(attempts[0]!.all("pre")[0]!.textContent).toBe("Oh")
    // Without a response there is nothing to say about its body.
    expect(attempts[1]!.textContent).not.toContain("The response had no body")
    await press(top.all({ class: "delivery-body" })[0]!.all("button")[0]!.textContent)
    const again = await answered(200, {})
    expect([again.url, again.body]).toEqual(["/api/events/evt_1/replay", { webhook_id: "wh_1" }])
    await fire(top.all({ class: "delivery-body" })[0]!.all("button").at(-1), "click")
    const request = await answered(200, {
      url: "https://example.org/?a='1'",
      headers: { "x-a": "b" },
      body: '{"a":"it\'s"}',
    })
    expect(request.url).toBe(`${at}/wh_1/deliveries/dlv_1/request`)
    await eventually(() => expect(top.textContent).toContain("curl"))
    expect(top.all({ class: "code" })[0]!.all("pre")[0]!.textContent).toBe(
      String.raw`curl -X POST 'https://example.org/?a='\''1'\''' \
  -H 'x-a: b' \
  -d '{"a":"it'\''s"}'`,
    )
  })

  it("is one of the last 20 of its Webhook, of which those that failed are counted", async () => {
    const webhook = { id: "wh_1", url: "https://example.org/hook", event_types: ["*"], status: "active" }
    const of = (query: object) => ({ params: { handle: "ada", ...query }, query: { limit: "id" in query ? 20 : 200 } })
    client.setQueryData(["GET /api/identities/:handle/webhooks", of({})], { webhooks: [webhook], next_cursor: null })
    const deliveries = ["failed", "delivered", "queued", "failed"].map((status, at) => ({ id: `dlv_${at}`, status }))
    client.setQueryData(["GET /api/identities/:handle/webhooks/:id/deliveries", of({ id: "wh_1" })], { deliveries })
    const { top } = await drawn(WebhooksPage, { handle: "ada" })
    expect(top.textContent).toContain("2 failed")
    const tones = top.all({ class: "pips" })[0]!.all("i")
    expect(tones.map(({ attributes }) => attributes["data-tone"])).toEqual(["bad", "busy", "ok", "bad"])
  })

  it("of a test cannot be resent, because it has no Event", async () => {
    const delivery = {
      id: "d",
      event_id: "e",
      event_type: "webhook.test",
      status: "delivered",
      attempts: [],
      next_attempt_at: null,
      created_at: "2026-11-20T08:00:00Z",
    }
    const { top } = await drawn(DeliveryItem, { handle: "ada", id: "wh_1", delivery, open: true })
    expect(top.all({ class: "delivery-body" })[0]!.all("button").length).toBe(1)
    expect(top.all("a").length).toBe(0)
  })
})

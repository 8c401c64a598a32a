/** The pages of Events without a browser: what they read, where they lead, and what they say if there is nothing. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, source } from "./Modules.ts"

const { default: ActivityPage } = await source("events/ActivityPage.tsx")
const { default: EventPage } = await source("events/EventPage.tsx")
const { EventList } = await source("events/EventList.tsx")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  vi.stubGlobal("localStorage", new Entries())
  calls = heldCalls()
})
afterEach(leavePage)

const callOf = async (text: string) => {
  const find = () => calls.all.find(({ url }) => url.includes(text))
  await eventually(() => expect(find(), text).toBeDefined())
  return find()!
}
const event = (type: string, more: object = {}) => ({
  id: "evt_1",
  type,
  created_at: "2026-11-20T08:00:00.000Z",
  handle: "ada",
  data: {},
  ...more,
})
const received = { message_id: "msg_1", from: "grace@example.org", subject: "Plan", tag: null }

describe("The list of Events", () => {
  it.each([
    ["", "/api/events", "No Events yet"],
    ["?type=email.received", "type=email.received", "No results"],
    ["?handle=ada", "handle=ada", "No results"],
    // A type that does not exist, as in an old bookmark, is no filter.
    ["?type=nonsense", "/api/events", "No Events yet"],
  ])("reads what its address filters, and says why it is empty: %s", async (search, asked, text) => {
    await browserAt(`/activity${search}`)
    const { top } = await drawn(ActivityPage, {})
    const call = await callOf("/api/events")
    expect(call.url).toContain(asked)
    expect([...new URL(call.url, "http://localhost").searchParams.keys()].filter((name) => name !== "limit")).toEqual(
      asked === "/api/events" ? [] : [asked.split("=", 1)[0]],
    )
    call.answer(200, { events: [], next_cursor: null })
    await eventually(() => expect(top.textContent).toContain(text))
  })

  it("has rows that lead to each Event, and further ones on request", async () => {
    await browserAt("/activity")
    const { top, press } = await drawn(ActivityPage, {})
    const events = ["evt_1", "evt_2"].map((id) => event("identity.ready", { id }))
    ;(await callOf("/api/events")).answer(200, { events, next_cursor: "next" })
    await eventually(() =>
      expect(top.all({ class: "whole" }).map(({ attributes }) => attributes["href"])).toEqual([
        "/console/activity/evt_1",
        "/console/activity/evt_2",
      ]),
    )
    await press("Show more")
    await callOf("cursor=next")
  })

  it.each([
    ["identity.ready", "ok"],
    ["identity.failed", "bad"],
    ["email.bounced", "bad"],
    ["mail.stopped", "bad"],
    ["mail.started", "ok"],
    ["webhook.failed", "bad"],
    ["connector.stopped", "bad"],
    ["tunnel.transfer_blocked", "bad"],
    ["audit.gap", "bad"],
    ["account.deletion_started", "bad"],
    ["limit.near", "warn"],
    ["email.received", "off"],
  ])("marks %s as %s, and leads to the Event", async (type, tone) => {
    await browserAt("/activity")
    const { top } = await drawn(EventList, { events: [event(type, { data: { ...received, limit: "mail_hourly" } })] })
    expect(top.all({ class: "status" }).map(({ attributes }) => attributes["data-tone"])).toEqual([tone])
    expect(top.all("a")[0]!.attributes["href"]).toBe("/console/activity/evt_1")
  })
})

describe("The page of an Event", () => {
  const open = async (of: object) => {
    await browserAt("/activity/evt_1")
    const page = await drawn(EventPage, { id: "evt_1" })
    ;(await callOf("/api/events/evt_1")).answer(200, of)
    await eventually(() => expect(page.top.textContent).toContain("Webhook deliveries"))
    return { ...page, links: () => page.top.all("a").map(({ attributes }) => attributes["href"]) }
  }

  it("leads to its message and its Identity, and reads the deliveries to each Webhook", async () => {
    const { facts, links, top } = await open(event("email.received", { data: received }))
    expect(links()).toEqual(["/console/activity", "/console/identities/ada", "/console/identities/ada/mail/msg_1"])
    expect(facts()).toMatchObject({ Type: "email.received", Identity: "ada" })
    const webhooks = [{ id: "wh_1", url: "https://one.example/", event_types: ["*"], status: "active" }]
    ;(await callOf("/api/identities/ada/webhooks?")).answer(200, { webhooks, next_cursor: null })
    const { url } = await callOf("/webhooks/wh_1/deliveries")
    expect(url).toContain("event_id=evt_1")
    expect(top.textContent).toContain('"message_id": "msg_1"')
  })

  it.each([undefined, 7, "https://evil.example/"])("leads to no message if its data names none: %s", async (id) => {
    const { links } = await open(event("email.received", { data: { ...received, message_id: id } }))
    expect(links()).toEqual(["/console/activity", "/console/identities/ada"])
  })

  it("has no Identity and no deliveries if it concerns the account", async () => {
    const { facts, links, top } = await open(event("audit.gap", { handle: null, data: received }))
    expect(links()).toEqual(["/console/activity"])
    expect(Object.keys(facts())).toEqual(["Type", "Time", "ID"])
    expect(top.textContent).toContain("Account Events are not sent to Webhooks")
    expect(calls.all.some(({ url }) => url.includes("/webhooks"))).toBe(false)
  })
})

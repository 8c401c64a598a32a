/** The charts of activity without a browser: which activity they read, what they count, and which limits they show. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, type Call, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { UsageCharts } = await source("charts/UsageCharts.tsx")
const { Sparkline } = await source("charts/Sparkline.tsx")

beforeEach(() => vi.stubGlobal("localStorage", new Entries()))
afterEach(leavePage)

const ends_at = "2026-11-21T00:00:00.000Z"
const none = {
  mail_received: 0,
  mail_sent: 0,
  mail_refused: 0,
  tunnel_requests: 0,
  tunnel_errors: 0,
  tunnel_latency_ms: null,
  tunnel_bytes_in: 0,
  tunnel_bytes_out: 0,
  api_calls: 0,
  mailbox_bytes: null,
}
const on = (day: string, more: object) => ({ ...none, at: `2026-11-${day}T00:00:00.000Z`, ...more })
const usage = (points: ReadonlyArray<object>, webhooks: ReadonlyArray<object> = []) => ({
  ends_at,
  points,
  webhooks,
  identities: [],
})

/** Draws charts, and returns the legends of each by its title: names and values. */
const open = async (props: object, search = "") => {
  const entries = await browserAt(`/identities/ada${search}`)
  const calls = heldCalls()
  const page = await drawn(UsageCharts, props)
  const shown = () =>
    Object.fromEntries(
      page.top
        .all({ class: "chart" })
        .map((chart) => [
          chart.all("h3")[0]!.textContent,
          chart.all("li").map(({ textContent }) => textContent.trim()),
        ]),
    )
  const shows = (expected: object) => eventually(() => expect(shown()).toEqual(expected))
  const taken = new Set<Call>()
  /** Waits for a call whose URL contains this text, in any order. */
  const called = async (text: string) => {
    const find = () => calls.all.find((one) => one.url.includes(text) && !taken.has(one))
    await eventually(() => expect(find(), text).toBeDefined())
    const call = find()!
    taken.add(call)
    return call
  }
  return { ...page, called, entries, shows }
}

describe("Charts of activity", () => {
  it.each([
    ["", "step=day", 30],
    ["?span=week", "step=day", 7],
    ["?span=day", "step=hour", 24],
    ["?span=year", "step=day", 30],
  ])("read the period of the address: %s", async (search, step, steps) => {
    const { called, top } = await open({ of: "mail", handle: "ada" }, search)
    const { url } = await called("/api/usage")
    expect(url).toContain(step)
    expect(url).toContain("identity=ada")
    expect(top.all({ role: "slider" }).map(({ attributes }) => attributes["aria-valuemax"])).toEqual([String(steps)])
  })

  it("name the period that a person chooses in the address, except the usual one", async () => {
    const { entries, press } = await open({ of: "mail", handle: "ada" }, "?span=week")
    for (const name of ["24 hours", "30 days"]) await press(name)
    expect(entries).toEqual(["replace /identities/ada?span=day", "replace /identities/ada"])
  })

  it("count the mail of the period, and nothing before it", async () => {
    const { called, shows } = await open({ of: "mail", handle: "ada" }, "?span=week")
    const points = [
      on("13", { mail_received: 100 }),
      on("14", { mail_received: 1, mail_sent: 2 }),
      on("20", { mail_received: 4, mail_refused: 3 }),
    ]
    ;(await called("/api/usage")).answer(200, usage(points))
    await shows({ Mail: ["Received 5", "Sent 2", "Rejected 3"] })
  })

  it("count the attempts of one Webhook, and weigh its response times by them", async () => {
    const { called, shows } = await open({ of: "deliveries", handle: "ada", webhook: "wh_1" })
    const step = (webhook_id: string, day: string, succeeded: number, failed: number, latency_ms: number | null) => ({
      webhook_id,
      at: `2026-11-${day}T00:00:00.000Z`,
      succeeded,
      failed,
      latency_ms,
    })
    const steps = [
      step("wh_1", "18", 8, 2, 200),
      step("wh_2", "18", 50, 50, 900),
      step("wh_1", "19", 30, 0, 100),
      step("wh_1", "20", 0, 3, null),
    ]
    ;(await called("/api/usage")).answer(200, usage([], steps))
    await shows({
      "Delivery attempts": ["Succeeded 38", "Failed 5"],
      "Response time of your endpoint": ["Mean 125 ms"],
    })
  })

  it("count the requests of a Tunnel without its errors, whose response times do not count", async () => {
    const { called, shows } = await open({ of: "tunnel", handle: "ada" })
    const points = [
      on("19", { tunnel_requests: 12, tunnel_errors: 2, tunnel_latency_ms: 300 }),
      on("20", { tunnel_requests: 30, tunnel_latency_ms: 100 }),
      // Errors may be counted before their requests.
      on("18", { tunnel_requests: 1, tunnel_errors: 2 }),
    ]
    ;(await called("/api/usage")).answer(200, usage(points))
    await shows({ "Tunnel requests": ["Successful 40", "Errors 4"], "Response time of the agent": ["Mean 150 ms"] })
  })

  it("have no mean response time without requests", async () => {
    const { called, shows, top } = await open({ of: "tunnel", handle: "ada" })
    ;(await called("/api/usage")).answer(200, usage([]))
    await eventually(() => expect(top.textContent).toContain("No activity in this period"))
    await shows({ "Tunnel requests": ["Successful 0", "Errors 0"], "Response time of the agent": ["Mean –"] })
  })

  it("show the failure of their read, which can be repeated", async () => {
    const { called, press, shows, top } = await open({ of: "mail", handle: "ada" })
    ;(await called("/api/usage")).answer(400, problem(400, { detail: "The service said no." }))
    await eventually(() => expect(top.textContent).toContain("The service said no."))
    await press("Try again")
    ;(await called("/api/usage")).answer(200, usage([on("20", { mail_sent: 1 })]))
    await shows({ Mail: ["Received 0", "Sent 1", "Rejected 0"] })
  })
})

describe("Charts of limits", () => {
  const limits = (names: Readonly<Record<string, number>>) => ({
    limits: Object.entries(names).map(([name, limit]) => ({ name, limit, used: 0 })),
  })
  const transferred = on("20", {
    api_calls: 7,
    tunnel_bytes_in: 2048,
    tunnel_bytes_out: 1024,
    mail_sent: 3,
    mailbox_bytes: 3072,
  })
  const smaller = on("19", { mailbox_bytes: 4096 })

  it.each([
    ["", ["Limit 10 KiB"]],
    ["?span=day", []],
  ])("show those of the whole account, and the limit of a day for days only: %s", async (search, limit) => {
    const { called, shows } = await open({ of: "limits" }, search)
    const read = await called("/api/usage")
    expect(read.url).not.toContain("identity=")
    // The last step of either period starts at its end.
    const at = new Date(Date.parse(ends_at) - 3_600_000).toISOString()
    read.answer(200, usage([{ ...transferred, ...(search === "" ? {} : { at }) }]))
    ;(await called("/api/limits")).answer(200, limits({ tunnel_transfer: 10_240, mail_hourly: 9 }))
    await shows({
      "API calls": ["API calls 7"],
      "Tunnel data transfer": ["To the agents 2 KiB", "From the agents 1 KiB", ...limit],
    })
  })

  it.each([
    ["", []],
    ["?span=day", ["Limit 9"]],
  ])("show those of a chosen Identity, and the limit of an hour for hours only: %s", async (search, limit) => {
    const { called, enter, shows, top } = await open({ of: "limits" }, search)
    ;(await called("/api/identities")).answer(200, { identities: [{ handle: "ada" }], next_cursor: null })
    await eventually(() => expect(top.all("option")).toHaveLength(2))
    await enter("Show", "ada")
    const at = new Date(Date.parse(ends_at) - 3_600_000).toISOString()
    const earlier = new Date(Date.parse(ends_at) - 7_200_000).toISOString()
    const isDay = search !== ""
    ;(await called(isDay ? "/api/usage?step=hour&identity=ada" : "/api/usage?step=day&identity=ada")).answer(
      200,
      usage([
        { ...smaller, ...(isDay ? { at: earlier } : {}) },
        { ...transferred, ...(isDay ? { at } : {}) },
      ]),
    )
    const read = await called("/api/limits?")
    expect(read.url).toContain("identity=ada")
    read.answer(200, limits({ mail_hourly: 9, mailbox_bytes: 8192, tunnel_transfer: 1 }))
    await shows({
      "Messages sent": ["Sent 3", ...limit],
      "Mailbox size": ["Largest size 4 KiB", "Limit 8 KiB"],
    })
  })
})

it("A line of activity is scaled to its highest day, and says its total", async () => {
  const line = async (values: ReadonlyArray<number>) => {
    const { top } = await drawn(Sparkline, { values })
    return [top.all("path")[0]!.attributes["d"], top.textContent, top.all("svg")[0]!.attributes["viewBox"]]
  }
  expect(await line([0, 2, 4])).toEqual(["M0 19L1 10L2 1", "6 activities in 3 days", "0 0 2 20"])
  expect(await line([0, 0])).toEqual(["M0 19L1 19", "0 activities in 2 days", "0 0 1 20"])
})

/** The charts of activity without a browser: which activity they read, what they count, and which limits they show. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, type Call, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"
import { seriesOf } from "./UsageSeries.ts"

const { UsageCharts } = await source("charts/UsageCharts.tsx")
const { Sparkline } = await source("charts/Sparkline.tsx")

beforeEach(() => vi.stubGlobal("localStorage", new Entries()))
afterEach(leavePage)

const ends_at = "2026-11-21T00:00:00.000Z"
const on = (day: string, more: Readonly<Record<string, number>>) => ({ at: `2026-11-${day}T00:00:00.000Z`, ...more })
const usage = (...series: ReadonlyArray<ReadonlyArray<object>>) => ({ ends_at, series: series.flat() })

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
    ;(await called("/api/usage")).answer(200, usage(seriesOf(points)))
    await shows({ Mail: ["Received 5", "Sent 2", "Rejected 3"] })
  })

  it("count the attempts of one Webhook, and name the lowest and the highest response time", async () => {
    const { called, shows } = await open({ of: "deliveries", handle: "ada", webhook: "wh_1" })
    const other = [
      on("18", { deliveries_succeeded: 50, deliveries_failed: 50, delivery_ms_p50: 9, delivery_ms_p95: 9 }),
    ]
    const own = [
      on("18", { deliveries_succeeded: 8, deliveries_failed: 2, delivery_ms_p50: 200, delivery_ms_p95: 700 }),
      on("19", { deliveries_succeeded: 30, delivery_ms_p50: 100, delivery_ms_p95: 700 }),
      on("20", { deliveries_failed: 3 }),
    ]
    ;(await called("/api/usage")).answer(
      200,
      usage(seriesOf(other), seriesOf(other, { webhook_id: "wh_2" }), seriesOf(own, { webhook_id: "wh_1" })),
    )
    await shows({
      "Delivery attempts": ["Succeeded 38", "Failed 5"],
      "Response time of your endpoint": ["Median 100 ms – 200 ms", "95th percentile 700 ms"],
    })
  })

  it("count the requests of a Tunnel without its errors", async () => {
    const { called, shows } = await open({ of: "tunnel", handle: "ada" })
    const points = [
      on("19", { tunnel_requests: 12, tunnel_errors: 2, tunnel_ms_p50: 300, tunnel_ms_p95: 400 }),
      on("20", { tunnel_requests: 30, tunnel_ms_p50: 100, tunnel_ms_p95: 500 }),
      // Errors may be counted before their requests.
      on("18", { tunnel_requests: 1, tunnel_errors: 2 }),
    ]
    ;(await called("/api/usage")).answer(200, usage(seriesOf(points)))
    await shows({
      "Tunnel requests": ["Successful 40", "Errors 4"],
      "Response time of the agent": ["Median 100 ms – 300 ms", "95th percentile 400 ms – 500 ms"],
    })
  })

  it("have no response times without requests", async () => {
    const { called, shows, top } = await open({ of: "tunnel", handle: "ada" })
    const read = await called("/api/usage")
    expect(top.textContent).not.toContain("No activity")
    read.answer(200, usage())
    await eventually(() => expect(top.textContent).toContain("No activity in this period"))
    await shows({
      "Tunnel requests": ["Successful 0", "Errors 0"],
      "Response time of the agent": ["Median –", "95th percentile –"],
    })
  })

  it("show the failure of their read, which can be repeated", async () => {
    const { called, press, shows, top } = await open({ of: "mail", handle: "ada" })
    ;(await called("/api/usage")).answer(400, problem(400, { detail: "The service said no." }))
    await eventually(() => expect(top.textContent).toContain("The service said no."))
    await press("Try again")
    ;(await called("/api/usage")).answer(200, usage(seriesOf([on("20", { mail_sent: 1 })])))
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
    read.answer(200, usage(seriesOf([{ ...transferred, ...(search === "" ? {} : { at }) }])))
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
      usage(
        seriesOf([
          { ...smaller, ...(isDay ? { at: earlier } : {}) },
          { ...transferred, ...(isDay ? { at } : {}) },
        ]),
      ),
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

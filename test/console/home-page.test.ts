/** Home, without a browser: what needs a person, and the figures of the day. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, heldCalls, leaveAll, signedIn, source } from "./Modules.ts"
import { seriesOf } from "./UsageSeries.ts"

const { default: HomePage } = await source("home/HomePage.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")

let signOut = () => {}
beforeEach(async () => {
  heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/")
})
afterEach(async () => {
  await leaveAll()
  signOut()
  client.clear()
  vi.unstubAllGlobals()
})

const agent = (handle: string, more: object = {}) => ({
  handle,
  status: "ready",
  tunnel_connected: false,
  email: `${handle}@mail.example`,
  activity: [0, 0, 3],
  latest_message: null,
  ...more,
})
const overview = { needs: [], ends_at: "2026-11-26T00:00:00.000Z", series: [], identities: [], events: [] }
const opened = async (more: object = {}, identities: ReadonlyArray<object> = [agent("ada")]) => {
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
  client.setQueryData(["GET /api/overview", {}], { ...overview, ...more })
  return await drawn(HomePage, {})
}

describe("Home", () => {
  const need = (kind: string, more: object) => ({
    kind,
    identity: "ada",
    id: "x1",
    name: "name",
    reason: null,
    at: null,
    ...more,
  })

  it("asks for the first Identity before it shows anything else", async () => {
    signOut = await signedIn({ email: "ada@example.org" })
    const { top } = await opened({}, [])
    expect(top.textContent).toContain("Name your agent")
    expect(top.textContent).not.toContain("Today")
  })

  it("does not ask for the first Identity while the Identities load", async () => {
    signOut = await signedIn({ email: "ada@example.org" })
    const { top } = await drawn(HomePage, {})
    expect(top.textContent).not.toContain("Name your agent")
  })

  it("says that nothing needs a person", async () => {
    const { top } = await opened()
    expect(top.all("h1")[0]!.textContent).toBe("All agents healthy")
    expect(top.textContent).not.toContain("Needs attention")
    await leaveAll()
    const one = await opened({ needs: [need("key", { name: "laptop", identity: null })] })
    expect(one.top.all("h1")[0]!.textContent).toContain("1 item")
  })

  it("links each need to the page on which it is resolved, with the text of others isolated and cut", async () => {
    // The cut is not inside the last character, which UTF-16 stores in two units.
    const long = `${"s".repeat(79)}😀`
    const needs = [
      need("provisioning", { name: "mailbox" }),
      need("approval", { name: long, at: "2026-11-25T12:00:00.000Z" }),
      need("sign_in", { name: "t".repeat(80) }),
      need("webhook", { reason: "timeout" }),
      need("limit", { name: "calls", identity: null }),
      need("limit", { name: "mail" }),
      need("key", { name: "laptop", identity: null }),
    ]
    const { top } = await opened({ needs })
    expect(top.all("h1")[0]!.textContent).toContain("7 items")
    const rows = top.all({ class: "box rows needs" })[0]!.childNodes
    expect(rows.map((row) => row.all("a")[0]!.attributes["href"])).toEqual(
      [
        "/identities/ada",
        "/identities/ada/mail/approvals/x1",
        "/identities/ada/proof",
        "/identities/ada/webhooks/x1",
        "/settings/limits",
        "/settings/limits",
        "/keys",
      ].map((path) => `/console${path}`),
    )
    const texts = rows.map((row) => row.all("a")[0]!.textContent)
    for (const [n, word] of [
      [0, "mailbox"],
      [1, `\u2068${"s".repeat(79)}\ufffd…\u2069`],
      [2, `\u2068${"t".repeat(80)}\u2069`],
      [3, "timeout"],
      [4, "calls"],
      [5, "ada"],
      [6, "\u2068laptop\u2069"],
    ] as const)
      expect(texts[n]).toContain(word)
    expect(texts[4]).not.toContain("ada")
    expect(rows.map((row) => row.all({ "data-tone": "bad" }).length > 0)).toEqual([
      true,
      false,
      false,
      true,
      false,
      false,
      false,
    ])
    expect(rows.map((row) => row.all("time").length)).toEqual([0, 1, 0, 0, 0, 0, 0])
  })

  it("lists the latest Events as rows that the keys j and k walk, and links to each", async () => {
    const event = { id: "evt_1", type: "mail.stopped", created_at: overview.ends_at, handle: "ada", data: {} }
    const { top } = await opened({ events: [event] })
    const [list] = top.all("ul").filter(({ attributes }) => "data-list" in attributes)
    expect(list!.all({ class: "whole" }).map(({ attributes }) => attributes["href"])).toEqual([
      "/console/activity/evt_1",
    ])
  })

  it("shows the figures of today beside the 14 days that end with the period of the response", async () => {
    const { top } = await opened({
      series: seriesOf([
        { at: "2026-11-12T00:00:00.000Z", mail_received: 5 },
        { at: "2026-11-24T00:00:00.000Z", mail_received: 2, tunnel_errors: 4, deliveries_failed: 9 },
        {
          at: "2026-11-25T00:00:00.000Z",
          mail_received: 7,
          mail_refused: 2,
          mail_sent: 3,
          deliveries_succeeded: 4,
          deliveries_failed: 1,
          tunnel_requests: 11,
          api_calls: 13,
        },
      ]),
    })
    const figures = top.all({ class: "box figures" })[0]!.childNodes
    const shown = figures.map((figure) => [
      figure.all("dt")[0]!.textContent,
      figure.all({ class: "today number" })[0]!.textContent,
      figure.all({ "data-tone": "bad" })[0]?.textContent,
    ])
    expect(shown).toEqual([
      ["Messages received", "7", "2 rejected"],
      ["Messages sent", "3", undefined],
      ["Webhook deliveries", "5", "1 failed"],
      ["Tunnel requests", "11", undefined],
      ["API calls", "13", undefined],
    ])
    const paths = figures.map((figure) => figure.all("path")[0]!.attributes["d"]!)
    expect(paths[0]!.split("L")).toHaveLength(14)
    const received = "M0 6.142857142857142" // 5 of 7
    expect(paths[0]!.startsWith(received)).toBe(true)
    expect(paths[0]!.endsWith("L13 1")).toBe(true)
  })

  it("has no failures of an earlier day, and zeros for a day without activity", async () => {
    const { top } = await opened({ series: seriesOf([{ at: "2026-11-24T00:00:00.000Z", mail_refused: 3 }]) })
    expect(top.all({ class: "today number" }).map(({ textContent }) => textContent)).toEqual(["0", "0", "0", "0", "0"])
    expect(top.all({ class: "box figures" })[0]!.all({ "data-tone": "bad" })).toHaveLength(0)
  })

  it("lists the Identities with their state and their latest message", async () => {
    const message = (subject: string, from: string | null) => ({
      latest_message: { subject, from, received_at: "2026-11-25T12:00:00.000Z" },
    })
    const { top } = await opened({
      identities: [
        agent("ada", message("Plans", "bob@example.org")),
        agent("bob", { ...message("", "eve@example.org"), tunnel_connected: true, status: "provisioning" }),
        agent("carl"),
      ],
    })
    const rows = top.all({ "data-link": "true" }).map((row) => row)
    const cells = rows.map((row) => row.all("td").map(({ textContent }) => textContent))
    expect(rows.map((row) => row.all("a")[0]!.attributes["href"])).toEqual(
      ["ada", "bob", "carl"].map((handle) => `/console/identities/${handle}`),
    )
    expect(cells.map((row) => [row[0]!.includes("@mail.example"), row[4]!.slice(0, 5)])).toEqual([
      [true, "Plans"],
      [true, "eve@e"],
      [true, "None "],
    ])
    const [ada, bob] = cells
    expect([ada![1] === bob![1], ada![2] === bob![2]]).toEqual([false, false])
  })
})

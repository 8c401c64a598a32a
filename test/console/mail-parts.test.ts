/** Which form of a message the reader sees first, and which messages a list leaves out, without a browser. */
import { afterEach, describe, expect, it, vi } from "vitest"
import { drawn, Entries, heldCalls, leaveAll, source } from "./Modules.ts"

const { Body } = await source("mail/Body.tsx")
const { MailList } = await source("mail/MailList.tsx")
const { leaving } = await source("mail/selection/Bulk.ts")
const { client } = await source("client/Queries.ts")

afterEach(async () => {
  await leaveAll()
  leaving.value = new Set()
  client.clear()
  vi.unstubAllGlobals()
})

describe("A message", () => {
  const message = {
    id: "m",
    direction: "inbound",
    text: "words",
    text_reply: null,
    html: "<p>words</p>",
    headers: [],
    origin: { verdict: "verified" },
    size: 1,
  }
  it.each([
    ["HTML", {}],
    ["text", { origin: { verdict: "unverified" } }],
    ["text", { origin: { verdict: "failed" } }],
    ["HTML", { origin: { verdict: "failed" }, text: null }],
    ["HTML", { origin: { verdict: "failed" }, text: "  \n" }],
    ["text", { html: null }],
    ["text", { direction: "outbound" }],
    ["HTML", { direction: "outbound", text: null }],
  ])("is shown as %s first with %j", async (view, change) => {
    heldCalls()
    const given = { ...message, ...change }
    const { top, leave } = await drawn(Body, { handle: "ada", message: given })
    expect(top.all({ class: "message-text" }).length).toBe(view === "text" ? 1 : 0)
    expect(top.all("iframe").length).toBe(view === "HTML" ? 1 : 0)
    await leave()
  })

  it("shows the reply without its quotes until it is unfolded", async () => {
    const { top, fire, leave } = await drawn(Body, {
      handle: "ada",
      message: { ...message, html: null, text: "yes\n> no?", text_reply: "yes" },
    })
    const text = () => top.all({ class: "message-text" })[0]!.textContent
    const [more] = top.all({ "aria-expanded": "false" })
    expect(text()).toBe("yes")
    await fire(more, "click")
    expect([text(), more!.attributes["aria-expanded"]]).toEqual(["yes\n> no?", "true"])
    await fire(more, "click")
    expect(text()).toBe("yes")
    await leave()
  })
})

it("A conversation that is being deleted is not in the list", async () => {
  heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  vi.stubGlobal("location", { pathname: "/console/identities/ada/mail", search: "" })
  const thread = (id: string) => ({
    id,
    subject: `About ${id}`,
    snippet: "",
    participants: [{ address: "grace@example.org", name: null }],
    unread: 0,
    count: 1,
    messages: 1,
    flagged: false,
    labels: [],
    has_attachments: false,
    last_message_at: "2026-11-20T08:00:00.000Z",
    last_direction: "inbound",
  })
  const page = { threads: [thread("thr_1"), thread("thr_2")], next_cursor: null }
  const key = { params: { handle: "ada" }, query: { limit: 50, archived: false } }
  client.setQueryData(["GET /api/identities/:handle/threads", key], [{ name: 1, page, isStale: false }])
  leaving.value = new Set(["thr_1"])
  const { top, leave } = await drawn(MailList, { handle: "ada", email: "ada@example.org" })
  expect([top.textContent.includes("About thr_1"), top.textContent.includes("About thr_2")]).toEqual([false, true])
  await leave()
})

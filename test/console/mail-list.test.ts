/** The list of conversations and messages, without a browser. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, source } from "./Modules.ts"

const { MailList } = await source("mail/MailList.tsx")
const { MailNav } = await source("mail/MailNav.tsx")
const { Split } = await source("mail/Split.tsx")
const { Conversation } = await source("mail/Conversation.tsx")
const { leaving } = await source("mail/selection/Bulk.ts")
const { client } = await source("client/Queries.ts")

const at = "/api/identities/ada"
const own = "ada@mail.example"
let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
})
afterEach(async () => {
  leaving.value = new Set()
  await leaveAll()
  client.clear()
  vi.unstubAllGlobals()
})

const person = (address: string, name: string | null = null) => ({ address, name })
const thread = (id: string, more: object = {}) => ({
  id,
  subject: `About ${id}`,
  snippet: `snippet of ${id}`,
  participants: [person("grace@example.org")],
  unread: 0,
  messages: 1,
  flagged: false,
  labels: [],
  has_attachments: false,
  last_message_at: "2026-11-20T08:00:00.000Z",
  last_direction: "inbound",
  ...more,
})
const message = (id: string, more: object = {}) => ({
  id,
  direction: "inbound",
  from: person("grace@example.org", "Grace"),
  to: [person(own), person("x@example.org")],
  subject: `About ${id}`,
  snippet: "",
  received_at: "2026-11-20T08:00:00.000Z",
  seen: true,
  flagged: false,
  attachments: [],
  tags: [],
  labels: [],
  origin: { verdict: "verified" },
  ...more,
})

/** Draws the list at an address, and answers its first page. */
const opened = async (search: string, page: object, open?: string) => {
  await browserAt(`/identities/ada/mail${search}`)
  const shown = await drawn(MailList, { handle: "ada", email: own, open })
  const request = await calls.next()
  await act(async () => request.answer(200, { next_cursor: null, ...page }))
  const rows = () => shown.top.all("li").filter(({ attributes }) => attributes["data-entry"] !== undefined)
  const { pathname, searchParams } = new URL(request.url, "http://localhost")
  return { ...shown, rows, asked: [pathname, Object.fromEntries(searchParams)] }
}

describe("The list of conversations", () => {
  it("names the others of each conversation, its messages and its unread ones, and leads to it", async () => {
    const list = await opened(
      "",
      {
        threads: [
          thread("t1", {
            participants: [
              person("ADA+shop@mail.example"),
              person("grace@example.org", "Grace"),
              person("bob@example.org"),
            ],
            unread: 2,
            messages: 3,
          }),
          thread("t2", { participants: [person(own)], subject: "" }),
          thread("t3", { participants: [] }),
          thread("t4", { participants: ["a", "b", "c", "d"].map((name) => person(`${name}@example.org`)) }),
        ],
      },
      "t2",
    )
    expect(list.asked).toEqual([`${at}/threads`, { limit: "50", archived: "false" }])
    await eventually(() => expect(list.rows()).toHaveLength(4))
    const senders = list.rows().map((row) => row.all({ class: "sender one-line" })[0]!.textContent)
    expect(senders).toEqual([
      "Grace, bob@example.org",
      own,
      "(no sender)",
      "a@example.org, b@example.org, c@example.org",
    ])
    const links = list.rows().map((row) => row.all({ class: "whole one-line" })[0]!)
    expect(links.map(({ attributes }) => attributes["href"])).toEqual(
      ["t1", "t2", "t3", "t4"].map((id) => `/console/identities/ada/mail/threads/${id}`),
    )
    expect(links.map(({ textContent }) => textContent).slice(0, 2)).toEqual([
      "About t1snippet of t1",
      "(no subject)snippet of t2",
    ])
    const has = (name: string) => list.rows().map(({ attributes }) => name in attributes)
    expect([has("data-open"), has("data-unread")]).toEqual([
      [false, true, false, false],
      [true, false, false, false],
    ])
    const marks = list.rows().map((row) => row.all({ class: "marks" })[0]!.textContent)
    expect([marks[0]!.includes("3"), marks[0]!.includes("2"), marks[1]]).toEqual([true, true, ""])
  })

  it("is the archive at its address, and says that it is empty", async () => {
    const archive = await opened("?archived=1", { threads: [] })
    expect(archive.asked).toEqual([`${at}/threads`, { limit: "50", archived: "true" }])
    await eventually(() => expect(archive.top.textContent).toContain("No archived conversations"))
    await leaveAll()
    client.clear()
    const inbox = await opened("", { threads: [] })
    await eventually(() => expect(inbox.top.textContent).toContain("No mail yet"))
    expect(inbox.top.all({ href: `mailto:${own}` })).toHaveLength(1)
  })

  it("does not say that it is empty while its whole first page is being moved and further pages exist", async () => {
    leaving.value = new Set(["t1"])
    const list = await opened("", { threads: [thread("t1")], next_cursor: "next" })
    await eventually(() => expect(list.button("Show more")).toBeDefined())
    expect(list.rows()).toHaveLength(0)
    expect(list.top.textContent).not.toContain("No mail yet")
    await list.press("Show more")
    const more = await calls.next()
    expect(new URL(more.url, "http://localhost").searchParams.get("cursor")).toBe("next")
    await act(async () => more.answer(200, { threads: [thread("t2")], next_cursor: null }))
    await eventually(() => expect(list.rows()).toHaveLength(1))
  })
})

describe("The list of messages", () => {
  it.each([
    ["?q=plans", { query: "plans" }],
    ["?direction=inbound&unread=1", { direction: "inbound", seen: "false" }],
    ["?direction=other&flagged=1&tag=shop&label=done", { flagged: "true", tag: "shop", label: "done" }],
  ])("is filtered as the address says: %s", async (search, wanted) => {
    const { asked } = await opened(search, { messages: [] })
    expect(asked).toEqual([`${at}/messages`, { limit: "50", ...wanted }])
  })

  it.each([
    ["?direction=inbound", "No mail yet"],
    ["?direction=outbound", "No sent mail"],
    ["?direction=outbound&q=x", "No results"],
    ["?unread=1", "No results"],
  ])("says what is missing: %s", async (search, text) => {
    const list = await opened(search, { messages: [] })
    await eventually(() => expect(list.top.textContent).toContain(text))
  })

  it("names the sender of a received message and the recipient of a sent one, with its marks", async () => {
    const list = await opened(
      "?flagged=1",
      {
        messages: [
          message("m1", {
            seen: false,
            flagged: true,
            attachments: [{}],
            tags: ["a", "b", "c"],
            labels: ["d", "e", "f"],
          }),
          message("m2", { direction: "outbound", seen: false, to: [person("bob@example.org")] }),
          message("m3", { from: null, subject: "" }),
          message("m4", { direction: "outbound", to: [] }),
        ],
      },
      "m1",
    )
    await eventually(() => expect(list.rows()).toHaveLength(4))
    expect(list.rows().map((row) => row.all({ class: "sender one-line" })[0]!.textContent)).toEqual([
      "Grace",
      "bob@example.org",
      "(no sender)",
      "(no sender)",
    ])
    const links = list.rows().map((row) => row.all({ class: "whole one-line" })[0]!)
    expect(links.map(({ attributes }) => attributes["href"])).toEqual(
      ["m1", "m2", "m3", "m4"].map((id) => `/console/identities/ada/mail/${id}?flagged=1`),
    )
    expect(links[2]!.textContent).toContain("(no subject)")
    expect(links.map(({ textContent }) => textContent.startsWith("Unread: "))).toEqual([true, false, false, false])
    const has = (name: string) => list.rows().map(({ attributes }) => name in attributes)
    expect([has("data-open"), has("data-unread")]).toEqual([
      [true, false, false, false],
      [true, false, false, false],
    ])
    expect(
      list
        .rows()[0]!
        .all({ class: "tag" })
        .map(({ textContent }) => textContent),
    ).toEqual(["a", "b", "d", "e"])
    const current = links.map(({ attributes }) => attributes["aria-current"])
    expect(current).toEqual(["true", undefined, undefined, undefined])
    const marks = list.rows().map((row) => {
      const texts = row.all({ class: "marks" })[0]!.all("span")
      return texts.flatMap(({ attributes }) => attributes["title"] ?? attributes["data-tone"] ?? [])
    })
    expect(marks).toEqual([["Flagged", "Attachments", "ok"], ["Sent"], ["ok"], ["Sent"]])
  })
})

describe("The navigation of a Mailbox", () => {
  const opened = async (path: string) => {
    vi.stubGlobal("requestIdleCallback", (run: () => void) => void run())
    vi.stubGlobal("cancelIdleCallback", () => {})
    await browserAt(`/identities/ada/mail${path}`)
    const { top } = await drawn(MailNav, { handle: "ada" })
    return () => top.all("a")
  }

  it.each([
    ["", "Conversations"],
    ["/msg_1?direction=inbound", "Received"],
    ["?direction=outbound", "Sent"],
    ["?direction=other", "Conversations"],
    ["?archived=1&direction=inbound", "Archive"],
    ["/drafts?direction=inbound", "Drafts"],
    ["/approvals", "Approvals"],
    ["/approvals/msg_1", "Approvals"],
  ])("marks the part that is shown: %s", async (path, current) => {
    const links = await opened(path)
    const marked = links().filter(({ attributes }) => attributes["aria-current"] === "page")
    expect(marked.map(({ textContent }) => textContent)).toEqual([current])
  })

  it("counts the drafts and the messages that wait for approval", async () => {
    const links = await opened("")
    for (const _ of [1, 2]) {
      const { url, answer } = await calls.next()
      const page = url.includes("/drafts") ? { drafts: [{ id: "d" }] } : { approvals: [{ id: "a" }, { id: "b" }] }
      await act(async () => answer(200, { ...page, next_cursor: null }))
    }
    const texts = () => links().map(({ textContent }) => textContent)
    await eventually(() =>
      expect(texts()).toEqual(["Conversations", "Received", "Sent", "Archive", "Drafts1", "Approvals2"]),
    )
  })
})

it("The bar over an open message leads back to the list that it was opened from", async () => {
  await browserAt("/identities/ada/mail/msg_1?tag=work")
  const identity = { handle: "ada", status: "ready", email: own }
  client.setQueryData(["GET /api/identities/:handle", { params: { handle: "ada" } }], identity)
  const { top } = await drawn(Split, { handle: "ada", open: "msg_1", children: "the message" })
  const [back] = top.all({ class: "narrow-bar" })[0]!.all("a")
  expect(back!.attributes["href"]).toBe("/console/identities/ada/mail?tag=work")
  expect(top.textContent).toContain("the message")
})

it("A conversation loads five pages by itself, and another when its button is pressed", async () => {
  await browserAt("/identities/ada/mail/threads/t1")
  const { button, press } = await drawn(Conversation, { handle: "ada", id: "t1" })
  /** Answers the next read of the conversation, and returns its cursor. */
  const answered = async (page: number) => {
    for (;;) {
      const { url, answer } = await calls.next()
      const { pathname, searchParams } = new URL(url, "http://localhost")
      if (!pathname.endsWith("/threads/t1")) continue
      const messages = page === 1 ? [message("m1")] : []
      await act(async () => answer(200, { thread: thread("t1"), messages, next_cursor: `after ${page}` }))
      return searchParams.get("cursor")
    }
  }
  const cursors = []
  for (const page of [1, 2, 3, 4, 5]) cursors.push(await answered(page))
  expect(cursors).toEqual([null, "after 1", "after 2", "after 3", "after 4"])
  await eventually(() => expect(button("Show more")).toBeDefined())
  await press("Show more")
  expect(await answered(6)).toBe("after 5")
})

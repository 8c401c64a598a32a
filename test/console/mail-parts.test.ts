/** Parts of the mail pages without a browser: the form in which a message is shown first, marks, and the list while messages are deleted. */
import { h } from "preact"
import { useEffect } from "preact/hooks"
import { act } from "preact/test-utils"
import { afterEach, describe, expect, it, vi } from "vitest"
import type { Drawn } from "./Drawn.ts"
import { drawn, Entries, eventually, heldCalls, leaveAll, leavePage, problem, source } from "./Modules.ts"

const { Body } = await source("mail/Body.tsx")
const { MessageItem } = await source("mail/Message.tsx")
const { say } = await source("mail/texts.ts")
const { MailList } = await source("mail/MailList.tsx")
const { leaving } = await source("mail/selection/Bulk.ts")
const { call } = await source("client/Client.ts")
const { changing, client, useCall } = await source("client/Queries.ts")
const { Loaded } = await source("ui/Loaded.tsx")

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

describe("A message that is marked", () => {
  const route = "GET /api/identities/:handle/messages/:id"
  const input = { params: { handle: "ada", id: "msg_1" } }
  const opened: Array<boolean> = []
  const Opened = ({ seen }: { seen: boolean }) => {
    useEffect(() => void opened.push(seen), [])
    return h("p", null, seen ? "read" : "unread")
  }
  const Reader = () =>
    h(Loaded as never, { of: useCall(route, input), children: ({ seen }: { seen: boolean }) => h(Opened, { seen }) })
  const shows = (top: Drawn, text: string | RegExp) =>
    eventually(async () => {
      await act(async () => {})
      expect(top.textContent).toMatch(typeof text === "string" ? new RegExp(`^${text}$`) : text)
    })
  const read = async () => {
    const calls = heldCalls()
    opened.length = 0
    const { top } = await drawn(Reader, {})
    ;(await calls.next()).answer(200, { seen: false })
    await shows(top, "unread")
    const mark = (seen: boolean): Promise<void> =>
      changing(
        route,
        input,
        (before: object) => ({ ...before, seen }),
        () => call("PATCH /api/identities/:handle/messages/:id", { ...input, body: { seen } }),
      )
    return { top, calls, mark }
  }

  it("shows its mark although a response to an earlier read arrives", async () => {
    const { top, calls, mark } = await read()
    const marked = mark(true)
    const change = await calls.next()
    expect(change.method).toBe("PATCH")
    const again = client.refetchQueries()
    const before = await calls.next()
    before.answer(200, { seen: false, labels: ["late"] })
    await again
    expect(client.getQueryData([route, input])).toEqual({ seen: true, labels: ["late"] })
    await shows(top, "read")
    change.answer(200, {})
    ;(await calls.next()).answer(200, { seen: false, labels: ["later"] })
    await marked
    // Another program marked it as unread in the meantime.
    expect(client.getQueryData([route, input])).toEqual({ seen: false, labels: ["later"] })
  })

  it("shows its former mark if the change fails", async () => {
    const { top, calls, mark } = await read()
    const marked = mark(true)
    const change = await calls.next()
    await shows(top, "read")
    change.answer(409, { code: "conflict", status: 409, title: "t", detail: "no", agent_hint: "stop" })
    const after = await calls.next()
    await shows(top, "unread")
    after.answer(200, { seen: false })
    await expect(marked).rejects.toThrow()
  })

  it("does not show a change that failed in the next read, however soon that is answered", async () => {
    const { calls, mark } = await read()
    const marked = mark(true)
    const change = await calls.next()
    vi.stubGlobal("fetch", async () => Response.json({ seen: false }))
    change.answer(409, { code: "conflict", status: 409, title: "t", detail: "no", agent_hint: "stop" })
    await expect(marked).rejects.toThrow()
    expect(client.getQueryData([route, input])).toEqual({ seen: false })
  })

  it("shows no change that was pending when the person signed out", async () => {
    const { top, calls, mark } = await read()
    const [marked, rejected] = [mark(true), mark(true)]
    const [change, refused] = [await calls.next(), await calls.next()]
    await shows(top, "read")
    client.clear()
    refused.answer(409, { code: "conflict", status: 409, title: "t", detail: "no", agent_hint: "stop" })
    await expect(rejected).rejects.toThrow()
    expect(client.getQueryData([route, input])).toBeUndefined()
    const { top: next } = await drawn(Reader, {})
    ;(await calls.next()).answer(200, { seen: false })
    await shows(next, "unread")
    change.answer(200, {})
    ;(await calls.next()).answer(200, { seen: false })
    await marked
  })

  it("stays open if reading it again fails, so that it is not marked as read again", async () => {
    const { top, calls } = await read()
    const again = client.refetchQueries()
    ;(await calls.next()).answer(409, { code: "conflict", status: 409, title: "t", detail: "no", agent_hint: "stop" })
    await again
    await shows(top, /no.*unread$/)
    expect(opened).toEqual([false])
  })
})

describe("A message that is opened", () => {
  const whole = (more: object) => ({
    id: "msg_1",
    direction: "inbound",
    status: "sent",
    from: { address: "grace@example.org", name: "Grace" },
    to: [{ address: "ada@example.org", name: null }],
    cc: [],
    bcc: [],
    reply_to: [],
    seen: false,
    flagged: false,
    tags: [],
    labels: [],
    headers: [],
    attachments: [],
    html: null,
    text: "words",
    text_reply: null,
    snippet: "",
    size: 1,
    received_at: "2026-11-20T08:00:00.000Z",
    origin: { verdict: "verified" },
    ...more,
  })
  const opened = async (more: object, visibilityState = "visible", others: ReadonlyArray<object> = []) => {
    vi.stubGlobal("localStorage", new Entries())
    vi.stubGlobal("location", { pathname: "/console/identities/ada/mail/msg_1", search: "" })
    const calls = heldCalls()
    const messages = [more, ...others].map(whole)
    const item = (summary: object) =>
      h(MessageItem, { handle: "ada", summary, open: true, onToggle() {}, onRemoved() {} })
    const page = await drawn(() => messages.map(item), {})
    const listeners = new Set<() => void>()
    Object.assign(document, {
      visibilityState,
      addEventListener: (_: string, run: () => void) => listeners.add(run),
      removeEventListener: (_: string, run: () => void) => listeners.delete(run),
    })
    for (const message of messages) await calls.answered(200, message)
    await eventually(() => expect(page.top.textContent.split("Forward")).toHaveLength(messages.length + 1))
    const patches = () => calls.all.flatMap(({ method, url, body }) => (method === "PATCH" ? [[url, body]] : []))
    const links = () => page.top.all("a").map(({ attributes }) => attributes)
    return { ...page, links, listeners, patches, calls }
  }
  const person = (name: string) => ({ address: `${name}@example.org`, name: null })

  it("is marked as read when the page is visible, once", async () => {
    const { listeners, patches } = await opened({}, "hidden")
    await eventually(() => expect(listeners.size).toBe(1))
    const [check] = listeners
    check!()
    expect(patches()).toEqual([])
    Object.assign(document, { visibilityState: "visible" })
    await act(check!)
    await eventually(() =>
      expect([patches(), listeners.size]).toEqual([[["/api/identities/ada/messages/msg_1", { seen: true }]], 0]),
    )
  })

  it.each([{ seen: true }, { direction: "outbound" }])("is not marked as read if it is %j", async (more) => {
    // The effects of the second message run after those of the first one.
    const { patches } = await opened(more, "visible", [{ id: "msg_2" }])
    await eventually(() => expect(patches().map(([url]) => url)).toEqual(["/api/identities/ada/messages/msg_2"]))
  })

  it("offers its attachments by their position, with a name for those without one", async () => {
    const attachment = { content_type: "application/pdf", size: 1 }
    const { links } = await opened({
      seen: true,
      attachments: [
        { ...attachment, index: 0, filename: "plan.pdf" },
        { ...attachment, index: 2, filename: null },
      ],
    })
    const files = links().flatMap(({ href, download }) => (download === undefined ? [] : [[href, download]]))
    const at = "/api/identities/ada/messages/msg_1/attachments"
    expect(files).toEqual([
      [`${at}/0`, "plan.pdf"],
      [`${at}/2`, expect.stringMatching(/./)],
    ])
  })

  it.each([
    ["one recipient", {}, []],
    ["several recipients", { cc: [{ address: "bob@example.org", name: null }] }, ["reply=msg_1&all=1"]],
  ])("can be answered to all of %s only if that differs", async (_, more, all) => {
    const { links } = await opened({ seen: true, ...more })
    const compose = links().flatMap(({ href }) => (href!.includes("/compose?") ? [href!.split("?")[1]] : []))
    expect(compose).toEqual(["reply=msg_1", ...all, "forward=msg_1"])
  })

  const row = (summary: object) =>
    drawn(MessageItem, { handle: "ada", summary: whole(summary), open: false, onToggle() {}, onRemoved() {} })

  it("shows its sender and all recipients, and links each tag to its messages", async () => {
    const more = { cc: [person("bob")], bcc: [person("eve")], reply_to: [person("desk")], tags: ["a&b"] }
    const { facts, links } = await opened({ seen: true, ...more })
    expect(facts()).toMatchObject({
      From: "Grace <grace@example.org>",
      To: "ada@example.org",
      Cc: "bob@example.org",
      Bcc: "eve@example.org",
      "Reply to": "desk@example.org",
    })
    expect(links().map(({ href }) => href)).toContain("/console/identities/ada/mail?tag=a%26b")
    await leavePage()
    expect(Object.keys((await opened({ seen: true })).facts())).not.toContain("Reply to")
  })

  it.each([
    ["sent", "Sent"],
    ["awaiting_approval", "Created"],
    ["refused", "Created"],
  ])("of the Identity with the status %s has the date when it was %s", async (status, name) => {
    const updated_at = "2026-11-20T08:00:00Z"
    const delivery = [
      { ...person("bob"), status: "queued", updated_at, reason: null, reply: null, next_attempt_at: null },
    ]
    const { facts, calls, top, button } = await opened({ direction: "outbound", status, delivery })
    expect(Object.keys(facts())).toContain(name)
    expect(button("Mark as read")).toBeUndefined()
    const isSwitch = ({ url }: { readonly url: string }) => url === "/api/identities/ada/mail"
    await eventually(() => expect(calls.all.some(isSwitch)).toBe(true))
    await act(async () => calls.all.find(isSwitch)!.answer(200, { outgoing: "stopped", reason: null }))
    await eventually(() => expect(top.textContent).toContain(say("held_by_stop")))
  })

  it("says why it could not be marked, flagged and labelled, and hides no reason behind another", async () => {
    const { press, calls, top } = await opened({ seen: true, labels: ["todo"] })
    const reasons: Array<string> = []
    for (const [name, body] of [
      ["Mark as unread", { seen: false }],
      ["Flag", { flagged: true }],
      ["Remove label todo", { labels: [] }],
    ] as const) {
      await press(name)
      reasons.push(`not ${name}`)
      const patch = await calls.answered(422, problem(422, { detail: `not ${name}` }))
      expect(patch.body).toEqual(body)
      await calls.answered(200, whole({ seen: true, labels: ["todo"] }))
      await eventually(() => expect(reasons.filter((reason) => !top.textContent.includes(reason))).toEqual([]))
    }
  })

  it("is unread only if it was received", async () => {
    const isUnread = async (more: object) => (await row(more)).top.all({ "data-unread": "" }).length > 0
    expect([await isUnread({}), await isUnread({ direction: "outbound" }), await isUnread({ seen: true })]).toEqual([
      true,
      false,
      false,
    ])
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

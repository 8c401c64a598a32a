/** The message editor, without a browser: when a message can be sent, to whom, and what is sent. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, mounted, problem, source } from "./Modules.ts"

const { Composer } = await source("compose/Composer.tsx")
const { say } = await source("compose/texts.ts")
const { Toasts } = await source("ui/Toast.tsx")
const { go } = await source("router/Router.ts")
const { default: DraftsPage } = await source("compose/DraftsPage.tsx")
const { useKnown } = await source("compose/recipients.ts")
const { client } = await source("client/Queries.ts")
const { storeUnsavedFor } = await source("client/Unsaved.ts")

const at = "/api/identities/ada"
const params = { handle: "ada" }
let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  storeUnsavedFor("org")
  entries = await browserAt("/identities/ada/mail/compose")
  const set = (route: string, query: object | undefined, value: object) =>
    client.setQueryData([`GET /api/identities/:handle${route}`, { params, ...(query && { query }) }], value)
  const listed = (address: string, more: object = {}) => ({ address, expired: false, suppressed: null, ...more })
  const all = [
    listed("ok@example.org"),
    listed("old@example.org", { expired: true }),
    listed("lost@example.org", { suppressed: { since: "2026-11-20T08:00:00Z", reason: "550 no such user" } }),
  ]
  for (const address of ["ok", "OK", "old", "lost", "new"].map((name) => `${name}@example.org`)) {
    const found = all.filter((one) => one.address === address.toLowerCase())
    // A longer address begins with the same letters.
    const others = [listed(`${address.toLowerCase()}.example`)]
    set(
      "/allowed-recipients",
      { address: address.toLowerCase(), limit: 5 },
      { allowed_recipients: [...others, ...found] },
    )
  }
  set("/allowed-recipients", { limit: 200 }, { allowed_recipients: all })
  set("/messages", { limit: 50 }, { messages: [] })
  set("/ai-disclosure", undefined, { text: "By an AI", overridden: false })
  set("/mail", undefined, { outgoing: "active", reason: null })
  set("", undefined, { handle: "ada", status: "ready" })
})
afterEach(async () => {
  await leaveAll()
  storeUnsavedFor(undefined)
  client.clear()
  vi.unstubAllGlobals()
})
const answered = async (status: number, body?: object, headers?: Readonly<Record<string, string>>) => {
  const request = await calls.next()
  await act(async () => request.answer(status, body, headers))
  return request
}

const opened = async (mail: object, more: object = {}) => {
  const beginning = {
    kind: "draft",
    mail,
    draft: { id: "d1", tag: '"1"', at: "2026-11-20T08:00:00Z" },
    leftOut: [],
    ...more,
  }
  const shown = await drawn(Composer, {
    handle: "ada",
    email: "ada@agents.example",
    beginning,
    name: "compose:ada:",
    onMade: () => {},
    onReload: () => {},
  })
  const canSend = () => shown.button("Send")!.attributes["disabled"] === undefined
  /** Sends what was changed, and returns the write of the draft and the request that sends it. */
  const sent = async () => {
    await shown.submit()
    await shown.press("Send now")
    return [await answered(200, { id: "d1" }, { etag: '"2"' }), await calls.next()] as const
  }
  return { ...shown, canSend, sent }
}

describe("A message", () => {
  it.each([
    [true, { to: ["ok@example.org"] }],
    [true, { to: ["OK@example.org"] }],
    [false, { to: [] }],
    [false, { to: [], cc: ["ok@example.org"] }],
    [false, { to: ["ok@example.org", "old@example.org"] }],
    [false, { to: ["ok@example.org"], cc: ["lost@example.org"] }],
    [false, { to: ["ok@example.org"], bcc: ["new@example.org"] }],
    [false, { to: ["ok@example.org", "no address"] }],
  ])("can be sent: %s, %j", async (is, mail) => {
    const { canSend, submit, fire, press, top, button } = await opened(mail)
    expect(canSend()).toBe(is)
    // Enter alone begins a line of the text.
    await fire(top.all("form")[0], "keydown", { key: "Enter" })
    expect(button("Send now")).toBeUndefined()
    for (const pressed of ["ctrlKey", "metaKey"]) {
      await fire(top.all("form")[0], "keydown", { key: "Enter", [pressed]: true })
      expect(button("Send now") !== undefined).toBe(is)
      if (is) await press("Undo")
    }
    await submit()
    expect(button("Send now") !== undefined).toBe(is)
  })

  it("cannot be sent while outgoing mail is stopped or a file is being read, and adding a file cancels sending", async () => {
    const mail = { to: ["ok@example.org"] }
    const key = ["GET /api/identities/:handle/mail", { params }]
    client.setQueryData(key, { outgoing: "stopped", reason: "Looking into it" })
    const { canSend, fire, top, submit, button } = await opened(mail)
    expect([canSend(), top.textContent.includes("Looking into it")]).toEqual([false, true])
    await act(() => client.setQueryData(key, { outgoing: "active", reason: null }))
    await eventually(() => expect(canSend()).toBe(true))
    const readers: Array<Record<string, (event: object) => void>> = []
    vi.stubGlobal(
      "FileReader",
      class {
        result = "data:text/plain;base64,QQ=="
        readonly on: Record<string, (event: object) => void> = {}
        constructor() {
          readers.push(this.on)
        }
        addEventListener(type: string, run: (event: object) => void) {
          this.on[type] = run
        }
        readAsDataURL() {}
      },
    )
    await submit()
    expect(button("Send now")).toBeDefined()
    const files = [{ name: "a.txt", size: 1, type: "text/plain" }]
    await fire(top.all({ type: "file" })[0], "change", { currentTarget: { files, value: "" } })
    expect([button("Send now"), canSend()]).toEqual([undefined, false])
    await act(async () => readers[0]!["load"]!({}))
    await eventually(() => expect(canSend()).toBe(true))
    expect(top.textContent).toContain("a.txt")
  })

  it("is saved and sent once by the id of its draft, and then shown", async () => {
    const { sent, enter } = await opened({ to: ["ok@example.org"], subject: "One", text: "Dear" })
    await enter("Subject", "Two")
    const [draft, send] = await sent()
    expect(Object.keys(draft.body)).not.toContain("html")
    expect([draft.url, draft.body.subject, draft.body.text, send.method, send.url]).toEqual([
      `${at}/drafts/d1`,
      "Two",
      "Dear",
      "POST",
      `${at}/drafts/d1/send`,
    ])
    await act(async () => send.answer(202, { id: "msg_9", status: "queued" }))
    await eventually(() => expect(entries).toEqual(["replace /identities/ada/mail/msg_9"]))
  })

  it.each(["queued", "awaiting_approval"])(
    "says after sending whether the message was sent or awaits approval: %s",
    async (status) => {
      const toasts = await drawn(Toasts, {})
      const { sent, enter } = await opened({ to: ["ok@example.org"], subject: "One", text: "Dear" })
      await enter("Subject", "Two")
      const [, send] = await sent()
      await act(async () => send.answer(202, { id: "msg_9", status }))
      await eventually(() => expect(toasts.top.textContent).toContain(say(status === "queued" ? "queued" : "awaiting")))
    },
  )

  it("is saved when the tab is hidden and when the page is left, which asks only if it cannot be saved", async () => {
    const asked = vi.fn(() => false)
    vi.stubGlobal("confirm", asked)
    const { enter, showTab, leave, top } = await opened({ to: [], subject: "One" })
    await enter("Subject", "Two")
    await showTab("visible")
    expect(calls.waiting()).toBe(0)
    await showTab("hidden")
    expect((await answered(200, { id: "d1" }, { etag: '"2"' })).body.subject).toBe("Two")
    await eventually(() => expect(top.textContent).toContain(say("kept")))
    // Only leaving saves it, because the delay after the last change does not pass.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    await enter("Subject", "Three")
    await leave()
    await new Promise(setImmediate)
    expect(calls.waiting()).toBe(1)
    vi.useRealTimers()
    expect((await answered(200, { id: "d1" }, { etag: '"3"' })).body.subject).toBe("Three")
    await showTab("hidden")
    expect([calls.waiting(), asked.mock.calls.length]).toEqual([0, 0])
    for (const status of [412, 422]) {
      const { enter, showTab, leave, top } = await opened({ to: [], subject: "One" })
      await enter("Subject", "Two")
      await showTab("hidden")
      await answered(status, problem(status))
      await eventually(() => expect(top.textContent).toContain(say(status === 412 ? "overtaken" : "kept_here")))
      go("/keys")
      expect([status, asked.mock.calls.length, entries]).toEqual([status, 1, []])
      asked.mockClear()
      await leave()
      if (status === 422) await answered(422, problem(422))
    }
  })

  it("that was restored is saved, and names the attachments that it lacks", async () => {
    const { showTab, top } = await opened(
      { to: [], bcc: ["ok@example.org"], subject: "One" },
      { missing: ["large.zip"], leftOut: ["old.pdf"] },
    )
    expect(["large.zip", "old.pdf"].filter((name) => !top.textContent.includes(name))).toEqual([])
    expect(top.all("label").map(({ textContent }) => textContent)).toContain("Bcc")
    await showTab("hidden")
    expect((await calls.next()).body).toMatchObject({ bcc: ["ok@example.org"], subject: "One" })
  })

  it("stays with the reason if it is rejected", async () => {
    const { sent, top, enter, canSend } = await opened({ to: ["ok@example.org"], subject: "One", text: "Dear" })
    await enter("Subject", "Two")
    const [, send] = await sent()
    await act(async () => send.answer(422, problem(422, { errors: [{ path: "/subject", message: "too odd" }] })))
    await eventually(() => expect(top.all({ class: "wrong" })[0]?.textContent).toBe("too odd"))
    expect([entries, canSend()]).toEqual([[], true])
  })

  it("keeps the quote that is folded below what is written", async () => {
    const quote = "\n\nOn Friday, Grace wrote:\n> Hello\n> Ada"
    const { top, enter, sent } = await opened({ to: ["ok@example.org"], subject: "Re", text: quote })
    const written = () => top.all("textarea")[0]!.attributes["value"]
    expect(written()).not.toContain("> Hello")
    await enter("Text", "Dear Grace")
    const [draft] = await sent()
    expect(draft.body.text).toMatch(/^Dear Grace\n*On Friday, Grace wrote:\n> Hello\n> Ada$/)
    await leaveAll()
    const again = await opened({ to: ["ok@example.org"], text: quote })
    await again.press("Show quoted text")
    expect(again.top.all("textarea")[0]!.attributes["value"]).toContain("> Hello")
  })

  it("of a draft with HTML is plain only after a person removes the HTML", async () => {
    const { enter, press, sent, top } = await opened({ to: ["ok@example.org"], text: "Dear", html: "<b>Dear</b>" })
    expect(top.all({ type: "checkbox" }).length).toBe(0)
    await press("Remove HTML part")
    await enter("Subject", "One")
    const [draft] = await sent()
    expect(draft.body).toEqual({ to: ["ok@example.org"], text: "Dear", subject: "One" })
  })
})

it("People of recent mail and Allowed Recipients are suggested, except the Identity and those that mail cannot reach", async () => {
  const person = (address: string, name: string | null = null) => ({ address, name })
  const from = person("grace@example.org", "Grace")
  const to = [person("Ada@Agents.example"), person("no address"), person(`x@${"a".repeat(253)}`)]
  client.setQueryData(["GET /api/identities/:handle/messages", { params, query: { limit: 50 } }], {
    messages: [{ from, to, cc: [person("GRACE@example.org")] }],
  })
  const known = await mounted(() => useKnown("ada", "ada@agents.example"), {})
  expect(known.now).toEqual([person("GRACE@example.org", "Grace"), person("ok@example.org")])
})

describe("A recipient that mail cannot be sent to", () => {
  it("has a button that allows it or lifts its suppression, unless it is no mail address", async () => {
    const { top, fire } = await opened({
      to: ["new@example.org", "lost@example.org"],
      cc: ["old@example.org", "no address"],
    })
    const [list] = top.all({ class: "stack refusals" })
    const rows = list!.all("li")
    expect(rows.map((row) => [row.all("bdi")[0]!.textContent, row.all("button").length])).toEqual([
      ["new@example.org", 1],
      ["lost@example.org", 1],
      ["old@example.org", 1],
      ["no address", 0],
    ])
    expect(rows[1]!.textContent).toContain("550 no such user")
    await fire(rows[1]!.all("button")[0], "click")
    const lift = await answered(409, problem(409, { detail: "not yet" }))
    expect([lift.method, lift.url]).toEqual(["DELETE", `${at}/allowed-recipients/lost%40example.org/suppression`])
    await eventually(() => expect(rows[1]!.textContent).toContain("not yet"))
    await fire(rows[2]!.all("button")[0], "click")
    const allow = await calls.next()
    expect([allow.method, allow.url, allow.body]).toEqual([
      "POST",
      `${at}/allowed-recipients`,
      { address: "old@example.org" },
    ])
  })
})

it("Discarding a draft asks first, deletes this draft, and leads to the others", async () => {
  const { press } = await opened({ to: [], text: "Dear" })
  await press("Discard")
  expect(calls.waiting()).toBe(0)
  await press("Discard")
  const request = await answered(204)
  expect([request.method, request.url]).toEqual(["DELETE", `${at}/drafts/d1`])
  await eventually(() => expect(entries).toEqual(["replace /identities/ada/mail/drafts"]))
})

it("Drafts are listed with the latest first, and each is discarded by its own button, after a question", async () => {
  const draft = (id: string, updated_at: string, attachments: ReadonlyArray<object> = []) => ({
    id,
    to: [],
    subject: id,
    snippet: "",
    attachments,
    updated_at,
  })
  const { top, press } = await drawn(DraftsPage, params)
  const drafts = [draft("older", "2026-11-20T08:00:00Z"), draft("newer", "2026-11-21T08:00:00Z", [{}])]
  const listed = async () => {
    for (let isListed = false; !isListed;) {
      const { method, url, answer } = await calls.next()
      isListed = method === "GET" && url.startsWith(`${at}/drafts`)
      const body = isListed ? { drafts, next_cursor: null } : { approvals: [], next_cursor: null }
      await act(async () => (method === "GET" ? answer(200, body) : answer(204)))
    }
  }
  await listed()
  await eventually(() => expect(top.all({ class: "subject" }).length).toBe(2))
  expect(top.all({ class: "subject" }).map(({ textContent }) => textContent)).toEqual(["newer", "older"])
  // The newer draft has an attachment.
  expect(top.all({ class: "marks" }).map((marks) => marks.all("svg").length)).toEqual([2, 1])
  const [button] = top.all("button").filter(({ attributes }) => attributes["aria-label"]?.includes("older"))
  await press(button!.attributes["aria-label"]!)
  expect(calls.all.every(({ method }) => method === "GET")).toBe(true)
  await press("Discard")
  await eventually(() => expect(calls.all.at(-1)!.method).toBe("DELETE"))
  expect(calls.all.at(-1)!.url).toBe(`${at}/drafts/older`)
  await listed()
  const toasts = await drawn(Toasts, {})
  await eventually(() => expect(toasts.top.textContent).toContain(say("discarded")))
})

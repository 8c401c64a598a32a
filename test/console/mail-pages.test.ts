/** The pages of a Mailbox and the frame that they share, without a browser: where they lead, and what is missing. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { default: MailPage } = await source("mail/MailPage.tsx")
const { default: MessagePage } = await source("mail/MessagePage.tsx")
const { default: ComposePage } = await source("compose/ComposePage.tsx")
const { default: DraftsPage } = await source("compose/DraftsPage.tsx")
const { Refusals } = await source("compose/Refusals.tsx")
const { IdentityFrame } = await source("frame/IdentityFrame.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")
const { go } = await source("router/Router.ts")
const { storeUnsavedFor, unsavedInput } = await source("client/Unsaved.ts")

const identity = (status = "ready") => ({ handle: "mia", status, email: "mia@agents.example" })
const at = "/console/identities/mia"
const params = { handle: "mia" }
let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
const know = () => client.setQueryData(["GET /api/identities/:handle", { params }], identity())
const openAt = async (path: string) => {
  entries = await browserAt(`/identities/mia${path}`)
}
beforeEach(() => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  vi.stubGlobal("requestIdleCallback", (run: () => void) => void run())
  vi.stubGlobal("cancelIdleCallback", () => {})
  storeUnsavedFor("org")
})
afterEach(async () => {
  await leavePage()
  storeUnsavedFor(undefined)
})

const taken = new Set<object>()
/** Answers the first open call whose method and URL contain this text. */
const answered = async (text: string, status: number, body?: object, headers?: Readonly<Record<string, string>>) => {
  const find = () => calls.all.find((call) => !taken.has(call) && `${call.method} ${call.url}`.includes(text))
  await eventually(() => expect(find(), text).toBeDefined())
  const call = find()!
  taken.add(call)
  await act(async () => call.answer(status, body, headers))
  return call
}

describe("The frame of the pages of an Identity", () => {
  const opened = (part = "mail") =>
    drawn(IdentityFrame, { ...params, part, children: ({ email }: { readonly email: string }) => `of ${email}` })

  it.each([
    ["overview", "mia · Agent Identity Service"],
    ["mail", "Mail · mia · Agent Identity Service"],
    ["manage", "Settings · mia · Agent Identity Service"],
  ])("names the window by its part: %s", async (part, title) => {
    await openAt("/mail")
    const { top } = await opened(part)
    expect(document.title).toBe(title)
    expect(
      top
        .all("nav")[0]!
        .all("a")
        .map(({ attributes }) => attributes["href"]),
    ).toEqual(
      ["", "/mail", "/webhooks", "/tunnel", "/connectors", "/profile", "/proof", "/settings"].map((to) => at + to),
    )
  })

  it("shows what the list of Identities knows until the Identity was read", async () => {
    await openAt("/mail")
    const identities = [{ ...identity(), handle: "other" }, identity("failed")]
    client.setQueryData(["GET /api/identities", identitiesInput], { identities })
    const { top } = await opened()
    expect([top.all("h1")[0]!.textContent, top.textContent.includes("of mia@")]).toEqual(["miaFailed", true])
    await answered("/identities/mia", 200, identity())
    await eventually(() => expect(top.all("h1")[0]!.textContent).toBe("miaReady"))
  })

  it("leads to the list of Identities if there is none of this name", async () => {
    await openAt("/mail")
    const { top } = await opened()
    await answered("/identities/mia", 404, problem(404))
    await eventually(() => expect(top.textContent).toContain("Identity not found"))
    expect(top.all("a").at(-1)!.attributes["href"]).toBe("/console/identities")
    expect(top.textContent).not.toContain("of mia@")
  })

  it.each([
    ["provisioning", true],
    ["deleting", true],
    ["ready", false],
    ["failed", false],
  ])("reads an Identity that is %s again: %s", async (status, isPolled) => {
    await openAt("/mail")
    await opened()
    await answered("/identities/mia", 200, identity(status))
    const query = client.getQueryCache().find({ queryKey: ["GET /api/identities/:handle", { params }] })
    await eventually(() => expect(query.state.data).toBeDefined())
    // Without a browser, nothing is read again by time.
    expect(query.observers[0].options.refetchInterval(query)).toBe(isPolled ? 500 : false)
  })
})

describe("The Mailbox", () => {
  it.each([
    [0, undefined],
    [1, "1 message needs your approval.Review"],
    [2, "2 messages need your approval.Review"],
  ])("says how many messages await approval (%d), and leads to them and its other pages", async (count, text) => {
    know()
    await openAt("/mail")
    const { top } = await drawn(MailPage, params)
    await answered("/approvals", 200, { approvals: Array.from({ length: count }, (_, n) => ({ id: `${n}` })) })
    const note = () => top.all({ class: "note" })[0]
    await eventually(() => expect(note()?.textContent).toBe(text))
    const links = top.all("a").map(({ attributes }) => attributes["href"])
    expect(links).toEqual(expect.arrayContaining([`${at}/mail/settings`, `${at}/mail/compose`]))
    if (count > 0) expect(note()!.all("a")[0]!.attributes["href"]).toBe(`${at}/mail/approvals`)
  })

  it("shows a message in its conversation, or says that there is none", async () => {
    know()
    await openAt("/mail/msg_1")
    const { top, draw } = await drawn(MessagePage, { ...params, id: "msg_1" })
    await answered("/messages/msg_1", 200, { thread_id: "thr_7" })
    await answered("/threads/thr_7", 200, { thread: { subject: "Plan", messages: 0 }, messages: [] })
    await eventually(() => expect(top.all({ class: "conversation" }).length).toBe(1))
    await draw({ ...params, id: "msg_2" })
    await answered("/messages/msg_2", 404, problem(404))
    await eventually(() => expect(top.textContent).toContain("Message not found"))
  })
})

describe("The page of a composer", () => {
  const composed = async (search: string) => {
    know()
    await openAt(`/mail/compose${search}`)
    const page = await drawn(ComposePage, params)
    const title = () => page.top.all("h2")[0]?.textContent
    const subject = () => page.field("Subject")?.attributes["value"]
    return { ...page, title, subject }
  }
  const draft = { id: "dft_1", updated_at: "2026-11-20T08:00:00Z", to: [], subject: "Plan", text: "Dear" }

  it("names the draft that it made by its address, and stays the same composer", async () => {
    const { enter, title, subject } = await composed("")
    await eventually(() => expect(title()).toBe("New message"))
    await enter("Subject", "One")
    const made = await answered("POST /api/identities/mia/drafts", 201, { id: "dft_9" }, { etag: '"1"' })
    expect(made.body.subject).toBe("One")
    await eventually(() => expect(entries).toEqual(["replace /identities/mia/mail/compose?draft=dft_9"]))
    expect([title(), subject()]).toEqual(["New message", "One"])
    expect(calls.all.some(({ method, url }) => method === "GET" && url.includes("dft_9"))).toBe(false)
    // A link to another draft opens it.
    await act(() => go("/identities/mia/mail/compose?draft=dft_1"))
    await answered("/drafts/dft_1", 200, draft, { etag: '"1"' })
    await eventually(() => expect([title(), subject()]).toEqual(["Draft", "Plan"]))
  })

  it("does not lead back to a draft that was made after the page was left", async () => {
    const { enter, title } = await composed("")
    await eventually(() => expect(title()).toBe("New message"))
    await enter("Subject", "One")
    await act(() => go("/identities/mia/mail"))
    await answered("POST /api/identities/mia/drafts", 201, { id: "dft_8" }, { etag: '"1"' })
    await new Promise(setImmediate)
    expect(entries).toEqual(["push /identities/mia/mail"])
  })

  it("shows the version of the service on request, and says if the draft is gone", async () => {
    const { enter, press, showTab, subject, top } = await composed("?draft=dft_1")
    await answered("/drafts/dft_1", 200, draft, { etag: '"1"' })
    await eventually(() => expect(subject()).toBe("Plan"))
    await enter("Subject", "Mine")
    await showTab("hidden")
    await answered("PUT /api/identities/mia/drafts/dft_1", 412, problem(412))
    await eventually(() => expect(top.textContent).toContain("This draft was changed, sent or deleted elsewhere."))
    await press("Show the other version")
    await answered("GET /api/identities/mia/drafts/dft_1", 200, { ...draft, subject: "Theirs" }, { etag: '"2"' })
    await eventually(() => expect(subject()).toBe("Theirs"))
    const other = await composed("?draft=dft_2")
    await answered("/drafts/dft_2", 404, problem(404))
    await eventually(() => expect(other.top.textContent).toContain("This draft was sent or deleted"))
    const back = other.top.all("a").find(({ textContent }) => textContent === "All mail")
    expect(back!.attributes["href"]).toBe(`${at}/mail`)
  })
})

describe("The list of drafts", () => {
  const rows = (list: { all: (name: string) => ReadonlyArray<any> }) =>
    list
      .all("li")
      .map((row) => [
        ...["sender one-line", "subject", "snippet"].map((name) => row.all({ class: name })[0]?.textContent),
        row.all("a")[0].attributes["href"].replace(`${at}/mail/compose?`, ""),
      ])

  it("shows the drafts, and what is only in this browser", async () => {
    know()
    await openAt("/mail/drafts")
    const people = ["a", "b", "c", "d"].map((name) => `${name}@x.example`)
    unsavedInput("compose:mia:reply=msg_1").write({ mail: { to: people, subject: "Re", text: "typed" }, missing: [] })
    unsavedInput("compose:mia:").write({ mail: {}, missing: [] })
    unsavedInput("compose:other:").write({ mail: { subject: "Other" }, missing: [] })
    const { top } = await drawn(DraftsPage, params)
    const draft = { updated_at: "2026-11-20T08:00:00Z", attachments: [] }
    const drafts = [
      { ...draft, id: "d2", to: people, subject: "Plan", snippet: "Dear" },
      { ...draft, id: "d1", to: [], subject: "", snippet: "" },
    ]
    await answered("/drafts?", 200, { drafts, next_cursor: null })
    await eventually(() => expect(top.all({ class: "box rows mails" }).length).toBe(2))
    const [unsaved, saved] = top.all({ class: "box rows mails" })
    const three = "a@x.example, b@x.example, c@x.example"
    expect(rows(unsaved!)).toEqual([
      [three, "Re", "typed", "reply=msg_1"],
      ["(no recipients)", "(no subject)", "", ""],
    ])
    expect(rows(saved!)).toEqual([
      [three, "Plan", "Dear", "draft=d2"],
      ["(no recipients)", "(no subject)", "", "draft=d1"],
    ])
    expect(saved!.all("time").map(({ attributes }) => attributes["dateTime"])).toEqual(Array(2).fill(draft.updated_at))
  })

  it("says that there are none", async () => {
    know()
    await openAt("/mail/drafts")
    const { top } = await drawn(DraftsPage, params)
    await answered("/drafts?", 200, { drafts: [], next_cursor: null })
    await eventually(() => expect(top.textContent).toContain("No drafts"))
    expect(top.all({ class: "box rows mails" })).toEqual([])
  })
})

it("Recipients that mail cannot be sent to are named with the reason, and those that are not checked yet are not", async () => {
  const one = (is: string, more: object = {}) => ({ address: `${is}@x.example`, is, ...more })
  const judged = [
    ...["allowed", "unknown", "expired", "not_allowed", "wrong"].map((is) => one(is)),
    one("suppressed", { suppressed: { reason: "" } }),
    one("suppressed", { suppressed: { reason: "x".repeat(301) } }),
  ]
  const { top } = await drawn(Refusals, { ...params, judged })
  expect(top.all("li").map((row) => row.all({ class: "grow" })[0]!.textContent.replace("@x.example ", ": "))).toEqual([
    "expired: is no longer an Allowed Recipient, because the permission expired",
    "not_allowed: is not an Allowed Recipient",
    "wrong: is not an email address",
    "suppressed: is suppressed, because mail to it bounced",
    `suppressed: is suppressed, because mail to it bounced: ${"x".repeat(300)}`,
  ])
  expect(top.textContent).toContain("You can send this message once all recipients are allowed.")
  const none = await drawn(Refusals, { ...params, judged: judged.slice(0, 2) })
  expect(none.top.textContent).toBe("")
})

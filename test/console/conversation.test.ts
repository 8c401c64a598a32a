/** The page of a conversation, without a browser: what is expanded, what scrolls, and how much is loaded. */
import { afterEach, describe, expect, it, vi } from "vitest"
import { Drawn } from "./Drawn.ts"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { Conversation } = await source("mail/Conversation.tsx")
const { boundTo } = await source("ui/Keys.ts")
const { leaving } = await source("mail/selection/Bulk.ts")
const { client } = await source("client/Queries.ts")
const { Toasts } = await source("ui/Toast.tsx")

afterEach(async () => {
  await leavePage()
  vi.restoreAllMocks()
})

const summary = (id: string, more: object = {}) => ({
  id,
  direction: "inbound",
  from: { address: `${id}@example.org`, name: id },
  snippet: "",
  text_reply: null,
  seen: true,
  flagged: false,
  attachments: [],
  received_at: "2026-11-20T08:00:00.000Z",
  origin: { verdict: "verified" },
  ...more,
})
type Summary = ReturnType<typeof summary>
const unread = { seen: false }

/** Draws the page of a conversation of these messages, with what scrolls and which listeners the window has. */
const open = async (
  messages: ReadonlyArray<Summary>,
  {
    at,
    next_cursor = null,
    subject = "Plan",
    search = "?tag=work",
  }: {
    readonly at?: string
    readonly next_cursor?: string | null
    readonly subject?: string
    readonly search?: string
  } = {},
) => {
  vi.stubGlobal("localStorage", new Entries())
  const entries = await browserAt(`/identities/ada/mail/thr_1${search}`)
  const calls = heldCalls()
  const page = await drawn(Conversation, { handle: "ada", id: "thr_1", at })
  const listeners = new Map<string, () => void>()
  let grow = () => {}
  const observed: Array<Drawn> = []
  vi.stubGlobal("addEventListener", (type: string, run: () => void) => listeners.set(type, run))
  vi.stubGlobal("removeEventListener", (type: string, run: () => void) => {
    if (listeners.get(type) === run) listeners.delete(type)
  })
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(run: () => void) {
        grow = run
      }
      observe(one: Drawn) {
        observed.push(one)
        grow()
      }
      disconnect() {
        grow = () => {}
      }
    },
  )
  const scrolled: Array<string> = []
  vi.spyOn(Drawn.prototype, "scrollIntoView").mockImplementation(function (this: Drawn) {
    scrolled.push(this.all("article")[0]!.attributes["aria-label"]!)
  })
  const timers = vi.spyOn(globalThis, "setTimeout")
  const pageOf = (some: typeof messages, next: string | null) => ({
    thread: { subject, messages: messages.length },
    messages: some,
    next_cursor: next,
  })
  await calls.answered(200, pageOf(messages, next_cursor))
  await eventually(() => expect(page.top.all("article")).toHaveLength(messages.length))
  // An expanded message is read by an effect, like those of the page.
  await eventually(() => expect(calls.all.some(({ url }) => url.includes("/messages/"))).toBe(true))
  return {
    ...page,
    entries,
    calls,
    pageOf,
    listeners,
    scrolled,
    observed,
    grow: () => grow(),
    /** Ends the wait of this many milliseconds. */
    waited: (millis: number) => (timers.mock.calls.find((call) => call[1] === millis)![0] as () => void)(),
    /** Waits for the next call whose method and URL contain this text. */
    called: async (text: string) => {
      for (;;) {
        const call = await calls.next()
        if (`${call.method} ${call.url}`.includes(text)) return call
      }
    },
    /** The names of the messages that are expanded. */
    expanded: () =>
      page.top
        .all("article")
        .filter(({ attributes }) => "data-open" in attributes)
        .map(({ attributes }) => attributes["aria-label"]),
  }
}

describe("A conversation", () => {
  it.each([
    ["its last message, and unread ones of the last three", undefined, ["3", "5"]],
    ["the requested message only", "2", ["2"]],
    ["its last message if the requested one is not in it", "9", ["3", "5"]],
  ])("expands %s", async (_, at, expected) => {
    const messages = [
      summary("1", unread),
      summary("2", unread),
      summary("3", unread),
      summary("4", { ...unread, direction: "outbound" }),
      summary("5"),
    ]
    const { expanded, scrolled, fire, top } = await open(messages, at === undefined ? {} : { at })
    expect(expanded()).toEqual(expected)
    expect(scrolled.at(-1)).toBe(at === "2" ? "2" : "5")
    // A click collapses or expands a message.
    for (const article of [top.all("article")[0], top.all("article")[4]]) await fire(article!.all("button")[0], "click")
    const toggled = expected.includes("5") ? expected.filter((id) => id !== "5") : [...expected, "5"]
    expect(expanded()).toEqual(["1", ...toggled])
  })

  it("expands a message that arrives, and leaves the others as they are", async () => {
    const [one, two, three, four, five] = ["1", "2", "3", "4", "5"].map((id) => summary(id)) as [Summary, ...Array<any>]
    const { called, expanded, fire, pageOf, scrolled, top } = await open([one, two])
    const arrive = async (...messages: ReadonlyArray<Summary>) => {
      void client.invalidateQueries({ queryKey: ["GET /api/identities/:handle/threads/:id"] })
      ;(await called("/threads/")).answer(200, pageOf([one, two, ...messages], null))
    }
    await arrive(three, four)
    await eventually(() => expect(expanded()).toEqual(["2", "4"]))
    await eventually(() => expect(scrolled.at(-1)).toBe("4"))
    await fire(top.all("article")[3]!.all("button")[0], "click")
    await arrive({ ...three, from: { address: "c@example.org", name: "renamed" } }, four)
    await eventually(() => expect(top.textContent).toContain("renamed"))
    await arrive(three, four, five)
    await eventually(() => expect(expanded()).toEqual(["2", "5"]))
  })

  it("has its own state after another one was opened in its place", async () => {
    const { called, draw, expanded, pageOf } = await open([summary("0", unread), summary("1")])
    await draw({ handle: "ada", id: "thr_2", at: undefined })
    ;(await called("/threads/thr_2")).answer(200, pageOf([summary("2", unread), summary("3")], null))
    await eventually(() => expect(expanded()).toEqual(["2", "3"]))
    // It was loaded before.
    await draw({ handle: "ada", id: "thr_1", at: undefined })
    await eventually(() => expect(expanded()).toEqual(["0", "1"]))
  })

  it("hides a deleted message, and is left for its list if it was the only one", async () => {
    const nobody = { to: [], cc: [], bcc: [], reply_to: [] }
    const whole = (id: string) =>
      summary(id, { ...nobody, tags: [], labels: [], headers: [], html: null, text: "", size: 1 })
    for (const names of [["msg_1"], ["msg_1", "msg_2"]]) {
      const { called, entries, expanded, leave, press, top } = await open(names.map((id) => summary(id)))
      const last = names.at(-1)!
      ;(await called(`/messages/${last}`)).answer(200, whole(last))
      await eventually(() => expect(top.textContent).toContain("Forward"))
      await press("Delete")
      expect(expanded()).toEqual([])
      expect(entries).toEqual(names.length === 1 ? ["replace /identities/ada/mail?tag=work"] : [])
      await leave()
      client.clear()
      // Otherwise the deletion is sent during a later test.
      await (await drawn(Toasts, {})).press("Undo")
      expect(leaving.value.size).toBe(0)
    }
  })
})

describe("The requested or newest message of a conversation", () => {
  const two = [summary("1"), summary("2")]

  it("stays in view while the page grows, until the person does something", async () => {
    const { grow, listeners, observed, scrolled, top } = await open(two)
    expect(observed).toEqual([top.all("article")[1]!.parentNode!.parentNode])
    scrolled.length = 0
    grow()
    expect([scrolled, [...listeners.keys()]]).toEqual([["2"], ["wheel", "touchstart", "keydown", "pointerdown"]])
    for (const stop of listeners.values()) stop()
    grow()
    expect([scrolled, listeners.size]).toEqual([["2"], 0])
  })

  it("stays in view for three seconds, and not after the page was left", async () => {
    const first = await open(two)
    first.waited(3_000)
    first.scrolled.length = 0
    first.grow()
    expect([first.scrolled, first.listeners.size]).toEqual([[], 0])
    await first.leave()
    const second = await open(two)
    await second.leave()
    second.scrolled.length = 0
    second.grow()
    expect([second.scrolled, second.listeners.size]).toEqual([[], 0])
  })

  it("is not scrolled to if there is no other", async () => {
    const { observed, scrolled } = await open([summary("1")])
    expect([observed, scrolled]).toEqual([[], []])
  })

  it.each([
    ["newest", undefined, "msg_2"],
    ["requested", "msg_1", "msg_1"],
  ])("is the one that keys reply to, forward and flag: %s", async (_, at, id) => {
    const messages = [summary("msg_1"), summary("msg_2")]
    const { called, entries } = await open(messages, at === undefined ? {} : { at })
    for (const letter of ["r", "a", "f"]) boundTo(letter)()
    const compose = "push /identities/ada/mail/compose"
    expect(entries).toEqual([`${compose}?reply=${id}`, `${compose}?reply=${id}&all=1`, `${compose}?forward=${id}`])
    boundTo("s")()
    expect((await called("PATCH /api/identities/ada/messages")).body).toEqual({ ids: [id], threads: [], flagged: true })
  })

  it("has no flag by key while entries of the list are selected, to which the key belongs", async () => {
    await open(two, { search: "?selected=thr_9" })
    expect(boundTo("s")).toBeUndefined()
  })
})

it.each([
  ["Plan", "Plan"],
  ["", "(no subject)"],
])("The heading of a conversation is its subject %j, with the number of its messages", async (subject, heading) => {
  const { top } = await open([summary("1"), summary("2")], { subject })
  expect(top.all("h2")[0]!.parentNode!.textContent).toBe(`${heading}2 messages`)
})

it("A conversation that does not exist any more is named as such", async () => {
  const calls = heldCalls()
  await browserAt("/identities/ada/mail/thr_1")
  const { top } = await drawn(Conversation, { handle: "ada", id: "thr_1" })
  await calls.answered(404, problem(404))
  await eventually(() => expect(top.textContent).toBe("Message not found"))
})

it("A conversation with several unread messages can be marked as read", async () => {
  const one = await open([summary("1"), summary("2", unread)])
  expect(one.button("Mark all as read")).toBeUndefined()
  await one.leave()
  client.clear()
  const { button, called, press } = await open([summary("1", unread), summary("2", unread)])
  await press("Mark all as read")
  expect(button("Mark all as read")!.attributes["aria-busy"]).toBe("true")
  const { body } = await called("PATCH /api/identities/ada/messages")
  expect(body).toEqual({ ids: [], threads: ["thr_1"], seen: true })
})

describe("The pages of a conversation", () => {
  it("are loaded up to 500 messages, because the newest is on the last one", async () => {
    const { called, calls, pageOf, top } = await open([summary("1")], { next_cursor: "c1" })
    for (const n of [2, 3, 4, 5]) {
      const { url, answer } = await called("/threads/")
      expect(url).toContain(`limit=100&cursor=c${n - 1}`)
      answer(200, pageOf([summary(String(n))], `c${n}`))
    }
    await eventually(() => expect(top.all("article")).toHaveLength(5))
    // The effects that would load another page have run.
    await called("/messages/5")
    expect(calls.all.filter(({ url }) => url.includes("/threads/"))).toHaveLength(5)
  })
})

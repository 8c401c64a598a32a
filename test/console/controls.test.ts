/** Small parts that every page uses, without a browser: controls, tables, times, sentences, copied values and layout. */
import { h } from "preact"
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Drawn } from "./Drawn.ts"
import { browserAt, drawn, heldCalls, leavePage, mounted, problem, source } from "./Modules.ts"

const { Select, TextArea, TextField } = await source("ui/Field.tsx")
const { Button, ButtonLink } = await source("ui/Button.tsx")
const { Menu } = await source("ui/Menu.tsx")
const { Table } = await source("ui/Table.tsx")
const { Filter } = await source("ui/Filter.tsx")
const { boundTo, useKeys } = await source("ui/Keys.ts")
const { Time } = await source("ui/Time.tsx")
const { Sentence } = await source("ui/Sentence.tsx")
const { Copyable, CopyButton } = await source("ui/Copy.tsx")
const { Toasts } = await source("ui/Toast.tsx")
const { ProblemNote } = await source("ui/Problem.tsx")
const { Empty, Facts, Note, Page, Section, Status } = await source("ui/Page.tsx")
const { Refused } = await source("client/Client.ts")
const { connection } = await source("client/Live.ts")
const { now } = await source("client/Clock.ts")
const { dateTime, language } = await source("texts/Texts.ts")

beforeEach(async () => {
  heldCalls()
  await browserAt("/activity?handle=bob")
})
afterEach(async () => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  connection.value = "connecting"
  await leavePage()
})

const texts = (top: Drawn, name: string) => top.all(name).map(({ textContent }) => textContent)

describe("A field", () => {
  const field = { label: "Name", value: "", onValue: () => {} }

  it("has the type of its text, and text after it", async () => {
    const { top, draw } = await drawn<object>(TextField, { ...field, type: "password", after: "@example.org" })
    expect([top.all("input")[0]!.attributes["type"], top.textContent]).toEqual(["password", "Name@example.org"])
    await draw(field)
    expect(top.all("input")[0]!.attributes["type"]).toBe("text")
  })

  it("of several lines has their number, and the cursor before its text", async () => {
    const select = vi.spyOn(Drawn.prototype, "setSelectionRange")
    const { top } = await drawn<object>(TextArea, { ...field, rows: 12, autofocus: true })
    expect([top.all("textarea")[0]!.attributes["rows"], select.mock.calls]).toEqual(["12", [[0, 0]]])
    expect((await drawn(TextArea, field)).top.all("textarea")[0]!.attributes["rows"]).toBe("4")
    expect(select).toHaveBeenCalledTimes(1)
    select.mockRestore()
  })

  it("with options shows them", async () => {
    const options = ["a", "b"].map((one) => h("option", { key: one, value: one }, one))
    expect(texts((await drawn(Select, { ...field, children: options })).top, "option")).toEqual(["a", "b"])
  })
})

it("A filter shows the value in the address, and its options in the language of the page", async () => {
  const values = ["ada", "bob"]
  const say = (value: string) => value.toUpperCase()
  const { top, enter } = await drawn(Filter, { name: "handle", label: "Agent", any: "All", values, say })
  const options = () => top.all("option").map(({ attributes, textContent }) => [attributes["value"], textContent])
  const chosen = () => top.all("select")[0]!.attributes["value"]
  expect([chosen(), options()]).toEqual([
    "bob",
    [
      ["", "All"],
      ["ada", "ADA"],
      ["bob", "BOB"],
    ],
  ])
  await enter("Agent", "")
  expect([location.search, chosen() ?? ""]).toEqual(["", ""])
})

describe("A button", () => {
  const attributesOf = async (props: object) => {
    const shown = await drawn(Button, { children: "Save", ...props })
    const [button] = shown.top.all("button")
    return { ...shown, button: button!, attributes: button!.attributes }
  }
  const shape = (top: Drawn) => top.all("path")[0]?.attributes["d"]

  it("is busy while its command runs, and shows that in place of its icon", async () => {
    const run = vi.fn()
    const idle = await attributesOf({ command: { run, busy: false }, icon: "plus", kind: "primary", small: true })
    expect([idle.attributes["data-kind"], "data-small" in idle.attributes]).toEqual(["primary", true])
    const busy = await attributesOf({ command: { run, busy: true }, icon: "plus" })
    expect([busy.attributes["aria-busy"], shape(busy.top) === shape(idle.top)]).toEqual(["true", false])
    await busy.fire(busy.button, "click")
    expect(run).not.toHaveBeenCalled()
  })

  it("submits nothing while the service cannot be reached, and refers to the notice that says so", async () => {
    connection.value = "offline"
    const { attributes, fire, button } = await attributesOf({ busy: false, type: "submit" })
    expect([attributes["type"], attributes["aria-describedby"]]).toEqual(["submit", "unreachable"])
    expect(await fire(button, "click")).toBe(true)
  })

  it("that is a link looks like one", async () => {
    const props = { href: "/console/vault", kind: "primary", icon: "vault", children: "Vault" }
    const [link] = (await drawn(ButtonLink, props)).top.all("a")
    expect(link!.attributes).toMatchObject({ href: "/console/vault", "data-kind": "primary" })
    expect([link!.textContent, link!.all("path").length]).toEqual(["Vault", 1])
  })

  it("of a menu opens it, within the window", async () => {
    const { top, fire } = await drawn(Menu, { label: "More", icon: "help", children: "" })
    const [menu] = top.all({ popover: "auto" })
    expect(top.all("button")[0]!.attributes["popovertarget"]).toBe(menu!.attributes["id"])
    vi.stubGlobal("innerWidth", 300)
    const rectOf = vi.spyOn(Drawn, "rectOf").mockReturnValue({ left: 250, top: 0, width: 30, height: 30, bottom: 30 })
    Object.assign(menu!, { matches: () => true, offsetHeight: 50, offsetWidth: 100 })
    await fire(menu, "toggle")
    expect(menu!.style["left"]).toBe("192px")
    rectOf.mockRestore()
  })
})

it.each([
  [{}, { tabIndex: "0", role: "region", "aria-label": "Keys" }, false, ["Name", "End"]],
  [{ list: true, acts: "Actions" }, {}, true, ["Name", "End", "Actions"]],
])("A table can be scrolled by key, unless its rows take the focus: %j", async (props, region, isList, heads) => {
  const children = h("tr", {}, h("td", {}, "one"))
  const { top } = await drawn(Table, { label: "Keys", heads: ["Name", "End"], ...props, children })
  const { class: _, tabindex, ...attributes } = top.all({ class: "table" })[0]!.attributes
  expect(tabindex === undefined ? attributes : { ...attributes, tabIndex: tabindex }).toEqual(region)
  expect([top.all("table")[0]!.attributes["aria-label"], texts(top, "th"), texts(top, "td")]).toEqual([
    "Keys",
    heads,
    ["one"],
  ])
  expect("data-list" in top.all("tbody")[0]!.attributes).toBe(isList)
})

it("A letter runs what the component that was mounted last binds to it, until that is removed", async () => {
  const ran: Array<string> = []
  const binding = (name: string) => ({ e: () => ran.push(name) })
  const [list, message, dialog] = [
    await mounted(useKeys, binding("list")),
    await mounted(useKeys, binding("message")),
    await mounted(useKeys, { x: () => ran.push("dialog") }),
  ]
  boundTo("e")()
  await message.draw(binding("next message"))
  boundTo("e")()
  await list.leave()
  boundTo("e")()
  boundTo("x")()
  expect(ran).toEqual(["message", "next message", "next message", "dialog"])
  await message.leave()
  await dialog.leave()
  expect([boundTo("e"), boundTo("x")]).toEqual([undefined, undefined])
})

describe("A time", () => {
  const at = new Date(2026, 10, 20, 9, 30, 15)
  const shown = async (seconds: number, form?: string) => {
    vi.useFakeTimers({ toFake: ["Date"] })
    vi.setSystemTime(at.getTime() + seconds * 1000)
    const { top, fire } = await drawn(Time, { at: at.toISOString(), ...(form !== undefined && { form }) })
    const [time] = top.all("time")
    expect(time!.attributes["datetime"] ?? time!.attributes["dateTime"]).toBe(at.toISOString())
    await fire(time, "pointerenter")
    expect((time as unknown as { title: string }).title).toBe(dateTime(at))
    return time!.textContent.replaceAll(/[\u00A0\u202F]/g, " ")
  }

  it.each([
    // The clock was read eight seconds before the time, or long after it.
    [-8, 1, "ago", "now"],
    [120, 120, "ago", "2 min. ago"],
    [-7_200, -7_200, "ago", "in 2 hr."],
    [60, 60, "moment", "9:30 AM"],
    [3 * 86_400, 3 * 86_400, "moment", "Nov 20"],
    [60, 60, "full", "Nov 20, 2026, 9:30:15 AM"],
  ])("with a clock of %d s, %d s after it, has the form %s: %s", async (clock, seconds, form, text) => {
    now.value = at.getTime() + clock * 1000
    expect(await shown(seconds, form)).toBe(text)
    if (form === "ago") expect(await shown(seconds)).toBe(text)
  })
})

it("A sentence isolates the values that others have chosen, in the language of the reader", async () => {
  language.value = "de"
  const of = (spoken: string, mark: (value: string) => string) => `${spoken}: ${mark("ada")} → ${mark("שלום")}.`
  const { top } = await drawn(Sentence, { of, children: " Ende" })
  expect([top.textContent, texts(top, "bdi")]).toEqual(["de: ada → שלום. Ende", ["ada", "שלום"]])
})

describe("A value that can be copied", () => {
  const written = vi.fn<(text: string) => Promise<void>>(async () => {})
  const said = async () => {
    const { top } = await drawn(Toasts, { children: "notice" })
    expect(top.all({ role: "status", "aria-live": "polite" })[0]!.textContent).toMatch(/^notice/)
    return texts(top.all({ class: "toasts" })[0]!, "span").at(-1)
  }
  const pressed = async (value: unknown) => {
    written.mockClear()
    vi.stubGlobal("navigator", { clipboard: { writeText: written } })
    const { press } = await drawn(CopyButton, { value, what: "the key" })
    await press("Copy the key")
    await act(async () => {})
    return [written.mock.calls.flat(), await said()]
  }

  it("is shown beside its button", async () => {
    const { top } = await drawn(Copyable, { value: "did:web:ada", what: "DID" })
    expect(top.textContent).toBe("did:web:ada")
  })

  it("is read when it is copied, and the reason is shown if it cannot be read", async () => {
    expect(await pressed(async () => "secret")).toEqual([["secret"], "the key copied to clipboard"])
    const refused = new Refused(problem(409, { detail: "not ready" }))
    expect(await pressed(() => Promise.reject(refused))).toEqual([[], "not ready"])
    expect(await pressed(() => Promise.reject(new TypeError("x")))).toEqual([[], "Can’t reach the service"])
  })
})

it("A problem is an alert, and says when to try again only if waiting helps", async () => {
  const failure = new Refused(problem(409, { agent_hint: "fix_call", retry_after_seconds: 7 }))
  const { top } = await drawn(ProblemNote, { failure })
  expect([top.all({ role: "alert" }).length, top.textContent.includes("seconds")]).toEqual([1, false])
})

describe("A page", () => {
  it("begins at its top, and its heading can take the focus without scrolling", async () => {
    const focus = vi.spyOn(Drawn.prototype, "focus")
    const props = { title: "Mail", heading: "Mail of ada", lead: "Lead", actions: "Action", children: "content" }
    await (await drawn(Page, { title: "First", children: "" })).leave()
    await browserAt("/identities/ada/mail")
    const { top, draw } = await drawn(Page, { title: "", children: "" })
    focus.mockClear()
    await browserAt("/identities/ada/mail/settings")
    const scrolled = vi.fn()
    vi.stubGlobal("scrollTo", scrolled)
    await draw(props)
    expect([focus.mock.calls, scrolled.mock.calls]).toEqual([[[{ preventScroll: true }]], [[0, 0]]])
    const [heading] = top.all("h1")
    expect([heading!.textContent, heading!.attributes["tabindex"] ?? heading!.attributes["tabIndex"]]).toEqual([
      "Mail of ada",
      "-1",
    ])
    expect([texts(top, "div").at(-2), texts(top, "div").at(-1), top.textContent]).toEqual([
      "Lead",
      "Action",
      "Mail of adaLeadActioncontent",
    ])
  })

  it("has sections, facts, notes and states, and leaves out facts that do not apply", async () => {
    const section = await drawn(Section, { title: "Part", lead: "Lead", actions: "Action", children: "content" })
    expect(section.top.textContent).toBe("PartLeadActioncontent")
    const facts = [["One", "1"], undefined, false, null, ["Two", "2"]]
    expect((await drawn(Facts, { facts })).facts()).toEqual({ One: "1", Two: "2" })
    const empty = await drawn(Empty, { icon: "mail", title: "None", children: "Why", action: "Start" })
    expect(empty.top.textContent).toBe("NoneWhyStart")
    for (const part of [Note, Status]) {
      const { top } = await drawn(part, { tone: "warn", children: "text" })
      expect(top.all({ "data-tone": "warn" })[0]!.textContent).toBe("text")
    }
  })
})

/** Parts of every page, without a browser: heading and focus, tabs, problems, copying, notifications and forms. */
import { h } from "preact"
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Drawn } from "./Drawn.ts"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { Page, Segments, Tabs } = await source("ui/Page.tsx")
const { ProblemNote } = await source("ui/Problem.tsx")
const { Refused, Unreachable } = await source("client/Client.ts")
const { Code, CopyButton } = await source("ui/Copy.tsx")
const { tell, Toasts } = await source("ui/Toast.tsx")
const { Loaded, More } = await source("ui/Loaded.tsx")
const { Menu } = await source("ui/Menu.tsx")
const { CommandForm, useForm } = await source("ui/Form.tsx")
const { TextField } = await source("ui/Field.tsx")
const { storeUnsavedFor } = await source("client/Unsaved.ts")
const { language } = await source("texts/Texts.ts")

beforeEach(async () => {
  heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/identities/ada")
})
afterEach(async () => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  await leavePage()
  storeUnsavedFor(undefined)
})

it("The heading of a page takes the focus after navigation only, and its title is that of the window", async () => {
  const focus = vi.spyOn(Drawn.prototype, "focus")
  const opened = async (path: string, title: string) => {
    await browserAt(path)
    const { draw, leave } = await drawn(Page, { title, children: "" })
    return { again: () => draw({ title: `${title}!`, children: "" }), leave }
  }
  await (await opened("/first", "First")).leave()
  focus.mockClear()
  const { again, leave } = await opened("/second", "Second")
  expect([focus.mock.calls.length, document.title]).toEqual([1, "Second · Agent Identity Service"])
  await again()
  expect([focus.mock.calls.length, document.title]).toEqual([1, "Second! · Agent Identity Service"])
  await leave()
  await opened("/second", "Same page")
  expect(focus.mock.calls.length).toBe(1)
})

it.each([
  ["/identities/ada", ["Overview"]],
  ["/identities/ada/mail/msg_1", ["Mail"]],
  ["/identities/ada/mailbox", ["Overview"]],
  ["/identities/adam", []],
])("The tab with the longest path around the page is the current one: %s", async (path, current) => {
  await browserAt(path)
  const tabs = [
    { to: "/identities/ada", text: "Overview" },
    { to: "/identities/ada/mail", text: "Mail" },
  ]
  const { top } = await drawn(Tabs, { label: "Parts", tabs })
  expect(top.all({ "aria-current": "page" }).map(({ textContent }) => textContent)).toEqual(current)
})

it("A field takes the focus only if it asks for it, and the browser fills in nothing by itself", async () => {
  const focus = vi.spyOn(Drawn.prototype, "focus")
  const field = { label: "Name", value: "", onValue: () => {} }
  const { top } = await drawn(TextField, field)
  expect([focus.mock.calls.length, top.all("input")[0]!.attributes["autocomplete"]]).toEqual([0, "off"])
  await drawn(TextField, { ...field, autofocus: true })
  expect(focus.mock.calls.length).toBe(1)
})

it("A choice of a few options shows which one is chosen, and passes on another one", async () => {
  const onValue = vi.fn()
  const options = [
    ["a", "First"],
    ["b", "Second"],
  ]
  const { top, press } = await drawn(Segments, { label: "Choice", value: "b", options, onValue })
  expect(top.all({ "aria-pressed": "true" }).map(({ textContent }) => textContent)).toEqual(["Second"])
  await press("First")
  expect(onValue).toHaveBeenCalledWith("a")
})

describe("A problem", () => {
  const note = async (failure: Error, more: object = {}) => (await drawn(ProblemNote, { failure, ...more })).top

  it("has its detail, what to do, its explanation and the id of its request", async () => {
    const writeText = vi.fn(async () => {})
    vi.stubGlobal("navigator", { clipboard: { writeText } })
    const failure = new Refused(problem(409, { code: "handle_taken", title: "Taken", detail: "ada is taken" }))
    const { top, press } = await drawn(ProblemNote, { failure })
    expect([top.all("strong")[0]!.textContent, top.all("p")[0]!.textContent]).toEqual(["Taken", "ada is taken"])
    expect(top.all({ href: "/problems/handle_taken", rel: "noopener" }).length).toBe(1)
    expect([top.all("code")[0]!.textContent, top.all("button").length]).toEqual(["req_1", 1])
    await press("Copy req_1")
    expect(writeText).toHaveBeenCalledWith("req_1")
  })

  it.each([
    ["de", "handle_taken", "Der Name ist vergeben"],
    ["fr", "handle_taken", "Le nom est pris"],
    ["en", "handle_taken", "Title"],
    ["de", "not_in_the_table", "Title"],
  ])("has a title in the language of the reader (%s, %s), or that of the service", async (name, code, title) => {
    language.value = name
    const top = await note(new Refused(problem(409, { code, title: "Title" })))
    expect(top.all("strong")[0]!.textContent).toBe(title)
  })

  it("says when to try again, if that is known", async () => {
    const wait = { agent_hint: "wait", retry_after_seconds: 7 }
    expect((await note(new Refused(problem(429, wait)))).textContent).toContain("7 seconds")
    const unknown = { agent_hint: "wait" }
    expect((await note(new Refused(problem(503, unknown)))).textContent).not.toContain("seconds")
  })

  it("tells a service that cannot be reached from a fault of the page, and can be tried again", async () => {
    const onRetry = vi.fn()
    const { top, press } = await drawn(ProblemNote, { failure: new Unreachable("no answer"), onRetry })
    expect(top.textContent).not.toContain("no answer")
    await press("Try again")
    expect(onRetry).toHaveBeenCalledTimes(1)
    const fault = await note(new Error("x is not a function"))
    expect(fault.textContent).toContain("x is not a function")
    expect(fault.all("strong")[0]!.textContent).not.toBe(top.all("strong")[0]!.textContent)
  })
})

describe("Copying", () => {
  const clipboard = (writeText: (text: string) => Promise<void>) =>
    vi.stubGlobal("navigator", { clipboard: { writeText } })
  const shapes = ({ top }: { readonly top: Drawn }) => top.all("path").map(({ attributes }) => attributes["d"])
  const said = async () => (await drawn(Toasts, {})).top.all({ class: "toast" }).at(-1)!.textContent

  it("takes the whole text of a block whose secrets are masked, and says what it copied", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout"] })
    const copied: Array<string> = []
    clipboard(async (text) => void copied.push(text))
    const block = await drawn(Code, { text: "KEY=secret", shown: "KEY=•••", what: "the key" })
    const { fire, top } = block
    const before = shapes(block)
    await fire(top.all("button")[0], "click")
    await act(async () => {})
    expect([copied, top.all("pre")[0]!.textContent]).toEqual([["KEY=secret"], "KEY=•••"])
    expect(shapes(block)).not.toEqual(before)
    await act(async () => void (await vi.advanceTimersByTimeAsync(1_500)))
    expect(shapes(block)).toEqual(before)
    expect(await said()).toContain("the key")
  })

  it("says that the browser does not allow it, and does not look as if it had", async () => {
    clipboard(() => Promise.reject(new Error("denied")))
    const button = await drawn(CopyButton, { value: "x", what: "x" })
    const before = shapes(button)
    await button.press("Copy x")
    await act(async () => {})
    expect([await said(), shapes(button)]).toEqual([expect.stringContaining("blocked"), before])
  })
})

describe("A notification", () => {
  it("leaves after five seconds, or with its offer, or when it is dismissed", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const { top, press } = await drawn(Toasts, {})
    const texts = () => top.all({ class: "toast" }).map((one) => one.all("span")[0]!.textContent)
    const after = (millis: number) => act(async () => void (await vi.advanceTimersByTimeAsync(millis)))
    const own = () => texts().filter((text) => text.startsWith("own"))
    const run = vi.fn()
    await act(() => {
      tell("own 1")
      tell("own 2", { text: "Undo", run, millis: 8_000 })
      tell("own 3", { text: "Reload", run })
    })
    expect(own()).toEqual(["own 1", "own 2", "own 3"])
    await after(5_000)
    expect(own()).toEqual(["own 2", "own 3"])
    await after(3_000)
    expect([own(), run.mock.calls.length]).toEqual([["own 3"], 0])
    await after(100_000)
    await press("Reload")
    expect([own(), run.mock.calls.length]).toEqual([[], 1])
    await act(() => ["4", "5", "6", "7"].forEach((name) => tell(`own ${name}`)))
    expect(own()).toEqual(["own 5", "own 6", "own 7"])
    await press("Dismiss")
    expect(own()).toEqual(["own 5", "own 6"])
    await after(5_000)
  })
})

describe("What is read from the service", () => {
  const read = (more: object) => ({ data: undefined, error: null, isPending: true, refetch: vi.fn(), ...more })
  const children = (data: string) => data
  const missing = new Refused(problem(404, { detail: "gone" }))

  it("is shown with the error of reading it again, and its absence in place of the error", async () => {
    const shown = async (of: object, more: object = {}) =>
      (await drawn(Loaded, { of, children, ...more })).top.textContent
    expect((await drawn(Loaded, { of: read({}), children, lines: 2 })).top.all("i").length).toBe(2)
    expect(await shown(read({ data: "data" }))).toBe("data")
    const both = await shown(read({ data: "data", error: new Error("lost") }))
    expect([both.includes("lost"), both.endsWith("data")]).toEqual([true, true])
    expect(await shown(read({ data: "data", error: missing }), { gone: "no such thing" })).toBe("no such thing")
    const without = await shown(read({ data: "data", error: missing }))
    expect([without.includes("gone"), without.includes("data")]).toEqual([true, false])
    expect(await shown(read({ error: new Refused(problem(403)) }), { gone: "no such thing" })).not.toContain("no such")
  })

  it("is read again by its button, and continued only once at a time", async () => {
    const of = read({ error: new Error("lost") })
    await (await drawn(Loaded, { of, children })).press("Try again")
    expect(of.refetch).toHaveBeenCalledTimes(1)
    const list = { hasNextPage: true, isFetchingNextPage: true, fetchNextPage: vi.fn() }
    const { press, draw, top } = await drawn(More, { of: list })
    await press("Show more")
    expect(list.fetchNextPage).not.toHaveBeenCalled()
    await draw({ of: { ...list, isFetchingNextPage: false } })
    await press("Show more")
    expect(list.fetchNextPage).toHaveBeenCalledTimes(1)
    await draw({ of: { ...list, hasNextPage: false } })
    expect(top.all("button")).toEqual([])
  })
})

it("A menu is drawn when it opens. Its links and buttons close it, except those that are marked to keep it open", async () => {
  const onOpen = vi.fn()
  const { top, fire } = await drawn(Menu, { label: "More", icon: "help", onOpen, children: h("a", {}, "Settings") })
  vi.stubGlobal("Element", Drawn)
  vi.stubGlobal("innerWidth", 1_000)
  const [menu] = top.all({ popover: "auto" })
  expect(top.all("a")).toEqual([])
  await fire(menu, "beforetoggle")
  expect(top.all("a").length).toBe(1)
  let isOpen = true
  const hidden = vi.fn()
  Object.assign(menu!, { matches: () => isOpen, hidePopover: hidden, offsetHeight: 50, offsetWidth: 50 })
  await fire(menu, "toggle")
  isOpen = false
  await fire(menu, "toggle")
  expect([onOpen.mock.calls.length, menu!.style["top"], menu!.style["left"]]).toEqual([1, "104px", "8px"])
  // It stays within the window.
  isOpen = true
  Object.assign(menu!, { offsetHeight: 950 })
  await fire(menu, "toggle")
  expect(menu!.style["top"]).toBe("42px")
  const target = (found: ReadonlyArray<string>) =>
    Object.assign(new Drawn("span"), { closest: (one: string) => (found.includes(one) ? menu : null) })
  for (const [found, times] of [
    [[], 0],
    [["a, button", "[data-stay]"], 0],
    [["a, button"], 1],
  ] as const) {
    await fire(menu, "click", { target: target(found) })
    expect(hidden.mock.calls.length).toBe(times)
  }
})

describe("The form of a command", () => {
  const opened = async (submit: () => Promise<unknown>, props: object = {}) => {
    storeUnsavedFor("account")
    const [onDone, onCancel] = [vi.fn(), vi.fn()]
    const One = () => {
      const { command, field } = useForm({ name: "", other: "" }, submit, { name: "one", secrets: [] })
      const children = h(TextField, { label: "Name", ...field("name") })
      return h(CommandForm, { command, doing: "Save", onDone, onCancel, ...props, children })
    }
    const shown = await drawn(One, {})
    return { ...shown, onDone, onCancel, value: () => shown.field("Name")!.attributes["value"] ?? "" }
  }
  const refused = () => Promise.reject(new Refused(problem(409, { detail: "not now" })))

  it("is done when the service has accepted it, and says why it has not", async () => {
    let submit = refused as () => Promise<unknown>
    const { top, fire, onDone } = await opened(() => submit())
    // The browser does not send the form.
    expect(await fire(top.all("form")[0], "submit")).toBe(true)
    await eventually(() => expect(top.textContent).toContain("not now"))
    expect(onDone).not.toHaveBeenCalled()
    submit = () => Promise.resolve()
    await fire(top.all("form")[0], "submit")
    await eventually(() => expect(onDone).toHaveBeenCalledTimes(1))
    expect(top.textContent).not.toContain("not now")
  })

  it("shows its own problem instead of that of the service", async () => {
    const { top, submit } = await opened(refused, { problem: "changed by somebody else" })
    await submit()
    expect(top.textContent).toContain("changed by somebody else")
    expect(top.textContent).not.toContain("not now")
  })

  it("shows input of an earlier visit as such, and discards it when it is cancelled", async () => {
    const first = await opened(refused)
    expect(first.button("Discard changes")).toBeUndefined()
    await first.enter("Name", "half")
    await first.leave()
    const second = await opened(refused)
    expect(second.value()).toBe("half")
    await second.press("Discard changes")
    expect(second.value()).toBe("")
    await second.enter("Name", "other half")
    await second.press("Cancel")
    expect(second.onCancel).toHaveBeenCalledTimes(1)
    await second.leave()
    expect((await opened(refused)).value()).toBe("")
  })
})

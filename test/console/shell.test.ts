/** The frame around the pages, without a browser: its notices, its navigation, and the shortcuts of the keyboard. */
import { h } from "preact"
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Drawn } from "./Drawn.ts"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, signedIn, source } from "./Modules.ts"

// The choice of colors applies to the document when it is loaded.
vi.stubGlobal("document", { documentElement: { dataset: {} } })
const { Shell } = await source("shell/Shell.tsx")
vi.unstubAllGlobals()
const { Shortcuts } = await source("shell/Shortcuts.tsx")
const { help, letters, palette } = await source("shell/Overlays.ts")
const { identitiesInput } = await source("shell/Identities.ts")
const { place } = await source("router/Router.ts")
const { connection } = await source("client/Live.ts")
const { client } = await source("client/Queries.ts")
const { latest } = await source("client/Invalidation.ts")
const { default: EventAnnouncer } = await source("shell/EventAnnouncer.tsx")
const { state } = await source("client/Session.ts")
const { storeUnsavedFor, unsavedInput } = await source("client/Unsaved.ts")

let calls: ReturnType<typeof heldCalls>
let entries: ReadonlyArray<string>
let signOut = () => {}
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  entries = await browserAt("/identities/ada/mail")
  letters.value = true
})
afterEach(async () => {
  vi.useRealTimers()
  signOut()
  await leavePage()
  storeUnsavedFor(undefined)
  palette.value = help.value = false
  latest.value = undefined
  connection.value = "connecting"
})

const account = {
  org: { id: "org_a", email: "ada@example.org" },
  tos: { current_version: "2", accepted_version: "1", gated: false, effective_at: "2026-12-01T00:00:00.000Z" },
}
const opened = async (tos: object = {}, identities: ReadonlyArray<object> = []) => {
  signOut = await signedIn(account.org)
  state.value = { is: "in", session: { ...account, tos: { ...account.tos, ...tos } } }
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
  return await drawn(() => ("session" in state.value ? h(Shell, { children: "page" }) : null), {})
}

describe("The frame of the console", () => {
  it.each([
    [{}, true],
    [{ accepted_version: "2" }, false],
    [{ gated: true }, false],
    [{ effective_at: null }, false],
  ])("announces new terms until they are accepted or required: %j", async (tos, isShown) => {
    const { top } = await opened(tos)
    expect(top.all({ href: "/console/settings/terms" }).length).toBe(isShown ? 1 : 0)
  })

  it("lists nine Identities with their state, and leads to the others", async () => {
    const agents = "ada bob cy dan eve flo gus hal ian".split(" ").map((handle, at) => ({
      handle,
      status: ["ready", "failed", "provisioning"][at] ?? "ready",
    }))
    const few = await opened({}, agents)
    const list = () => few.top.all({ class: "agents" })[0]!
    const dots = list()
      .all("span")
      .flatMap(({ attributes }) => attributes["data-tone"] ?? [])
    expect(dots).toEqual(["ok", "bad", "busy", "ok", "ok", "ok", "ok", "ok", "ok"])
    expect(
      list()
        .all({ class: "hidden-text" })
        .map(({ textContent }) => textContent),
    ).toEqual(["Failed", "In progress"])
    expect([list().all("a").length, few.top.all({ href: "/console/identities" }).length]).toEqual([9, 1])
    const current = few.top.all("a").filter(({ attributes }) => "aria-current" in attributes)
    expect(current.map(({ attributes }) => attributes["href"])).toEqual([
      "/console/identities",
      "/console/identities/ada",
    ])
    await few.leave()
    const many = await opened({}, [...agents, { handle: "jan", status: "ready" }])
    expect(many.top.all({ class: "agents" })[0]!.all("a").at(-1)!.attributes["href"]).toBe("/console/identities")
  })

  it("marks only the part of the page that is shown as the current one", async () => {
    await browserAt("/identities/adam")
    const { top } = await opened({}, [{ handle: "ada", status: "ready" }])
    expect(top.all({ "aria-current": "true" })).toEqual([])
    expect(top.all({ "aria-current": "page" }).length).toBe(1)
  })

  it("asks before signing out discards what was not saved", async () => {
    const { top, fire, press } = await opened()
    storeUnsavedFor("org_a")
    unsavedInput("reply").write("Dear Bob")
    await fire(top.all({ class: "menu" })[0], "beforetoggle")
    const ask = vi.fn(() => false)
    vi.stubGlobal("confirm", ask)
    Object.assign(document, { cookie: "" })
    const sent = () => calls.all.map(({ method }) => method).filter((method) => method === "DELETE").length
    await press("Sign out")
    expect([ask.mock.calls.length, sent()]).toEqual([1, 0])
    ask.mockReturnValue(true)
    await press("Sign out")
    expect(sent()).toBe(1)
  })

  it("says that the service cannot be reached only while that is so", async () => {
    const { top } = await opened()
    const notice = () => top.all({ id: "unreachable" }).length
    expect(notice()).toBe(0)
    await act(() => void (connection.value = "offline"))
    expect(notice()).toBe(1)
    expect(top.all({ class: "status", "data-tone": "bad" }).length).toBe(1)
  })

  it("keeps the page of a session that has ended, until its reader signs in again or leaves it", async () => {
    const { top, fire, press } = await opened()
    expect(top.all("dialog")).toEqual([])
    await act(() => void (state.value = { is: "lost", session: account }))
    const [dialog] = top.all("dialog")
    await fire(dialog, "cancel")
    await fire(dialog, "click")
    expect([state.value.is, top.textContent.includes("page")]).toEqual(["lost", true])
    expect(dialog!.all({ href: "/auth/sign-in", target: "_blank" }).length).toBe(1)
    const heard: Array<unknown> = []
    const tab = new BroadcastChannel("svc-session")
    tab.onmessage = ({ data }) => void heard.push(data)
    const checks = () => calls.all.filter(({ url }) => url === "/api/auth/session").length
    const before = checks()
    Object.assign(document, { cookie: "svc_signed_in=1" })
    await press("Reload")
    expect([checks() - before, dialog!.all({ "aria-label": "Close" }).length]).toEqual([1, 0])
    await press("Leave page")
    expect(state.value.is).toBe("out")
    await eventually(() => expect(heard).toEqual(["changed"]))
    tab.close()
  })
})

it("Screen readers announce each Event that matters to a person, by one element per Event", async () => {
  latest.value = { id: "0", type: "email.received", handle: "old" }
  const { top } = await drawn(EventAnnouncer, {})
  const said = async (id: string, type: string, handle: string | null) => {
    await act(() => void (latest.value = { id, type, handle }))
    return top.all("span")[0]
  }
  expect(top.textContent).toBe("")
  expect(await said("1", "email.sent", "ada")).toBeUndefined()
  const first = await said("2", "email.received", "ada")
  expect(first!.textContent).toBe("ada received an email")
  const second = await said("3", "email.received", "ada")
  expect([second!.textContent, second === first]).toEqual(["ada received an email", false])
  await said("4", "email.sent", "bob")
  expect(top.textContent).toBe("ada received an email")
})

it("The frame has a link to its content, the search, the state of the connection and the account", async () => {
  const { top, fire } = await opened()
  const [skip] = top.all("a")
  expect(top.all({ id: skip!.attributes["href"]!.slice(1) })[0]!.localName).toBe("main")
  await fire(top.all({ class: "palette-button" })[0], "click")
  expect(palette.value).toBe(true)
  palette.value = false
  const tone = () => top.all({ class: "connection" })[0]!.all({ class: "status" })[0]!.attributes["data-tone"]
  expect(tone()).toBe("busy")
  await act(() => void (connection.value = "live"))
  expect(tone()).toBe("ok")
  await fire(top.all({ class: "menu" })[0], "beforetoggle")
  expect(top.all({ class: "menu-head" })[0]!.textContent).toBe("ada@example.org")
  // The choice of colors leaves the menu open.
  const dark = top.all("button").find(({ textContent }) => textContent === "Dark")
  expect(dark!.closest("[data-stay]")).not.toBeNull()
  const dataset: Record<string, string> = {}
  Object.assign(document.documentElement, { dataset })
  await fire(dark, "click")
  expect([dataset, localStorage.getItem("svc-look")]).toEqual([{ look: "dark" }, "dark"])
  const system = top.all({ "data-stay": "true" })[0]!.all("button")[0]
  await fire(system, "click")
  expect([dataset, localStorage.getItem("svc-look")]).toEqual([{}, "system"])
})

describe("A key", () => {
  const links = ["one", "two", "three"].map(() => new Drawn("a"))
  const started = async () => {
    const shown = await drawn(Shortcuts, {})
    const found: Record<string, Drawn> = {}
    Object.assign(document, {
      querySelector: (selector: string) => found[selector] ?? null,
      querySelectorAll: () => links,
    })
    for (const link of links) link.focus = () => void Object.assign(document, { activeElement: link })
    const press = (key: string, more: object = {}) => shown.happen("keydown", { key, target: null, ...more })
    return { ...shown, found, press }
  }
  const focused = () => links.indexOf(document.activeElement as never)
  const at = () => place.value.path

  it("moves the focus among the rows of a list, and stays at its ends", async () => {
    const { press } = await started()
    const steps = []
    for (const key of ["j", "j", "j", "j", "k", "k", "k"]) {
      await press(key)
      steps.push(focused())
    }
    expect(steps).toEqual([0, 1, 2, 2, 1, 0, 0])
  })

  it("opens a page after g, if it comes soon", async () => {
    vi.useFakeTimers({ toFake: ["Date"] })
    const { press } = await started()
    await press("g")
    vi.advanceTimersByTime(1_199)
    await press("v")
    expect(at()).toBe("/vault")
    await press("k")
    expect(at()).toBe("/vault")
    await press("g")
    vi.advanceTimersByTime(1_200)
    await press("s")
    expect(at()).toBe("/vault")
  })

  it.each([
    ["/identities/ada/mail", "/identities/ada/mail/compose"],
    ["/identities/%C3%BCber/mail/drafts", "/identities/%C3%BCber/mail/compose"],
    ["/identities/ada/mailbox", "/identities/new"],
    ["/vault", "/identities/new"],
  ])("writes a message in a Mailbox, and creates an Identity elsewhere: %s", async (from, to) => {
    entries = await browserAt(from)
    const { press } = await started()
    await press("c")
    expect(entries).toEqual([`push ${to}`])
  })

  it("opens the search of the page or the palette, and the help", async () => {
    const { press, found } = await started()
    const search = { focus: vi.fn() }
    found["main input[type=search]"] = search as never
    await press("/")
    expect([search.focus.mock.calls.length, palette.value]).toEqual([1, false])
    delete found["main input[type=search]"]
    await press("/")
    expect(palette.value).toBe(true)
    await press("?")
    expect(help.value).toBe(false)
    for (const [more, isOpen] of [
      [{ ctrlKey: true }, false],
      [{ metaKey: true }, true],
    ] as const) {
      await press("k", more)
      expect(palette.value).toBe(isOpen)
    }
    palette.value = false
    await press("?")
    expect(help.value).toBe(true)
  })

  it("is no shortcut in a text field, with a modifier, under a dialog, while shortcuts are off, or after the frame was removed", async () => {
    const { press, found, leave } = await started()
    const field = (members: object) => Object.assign(new Drawn("input"), { matches: () => false, ...members })
    const nothing = async (...[key, more]: Parameters<typeof press>) => {
      await press(key, more)
      expect([at(), help.value], JSON.stringify(more)).toEqual(["/identities/ada/mail", false])
    }
    for (const key of ["?", "c"]) {
      await nothing(key, { target: field({ matches: () => true }) })
      await nothing(key, { target: field({ isContentEditable: true }) })
      for (const modifier of ["metaKey", "ctrlKey", "altKey"]) await nothing(key, { [modifier]: true })
      found["dialog[open]"] = new Drawn("dialog")
      await nothing(key)
      delete found["dialog[open]"]
      letters.value = false
      await nothing(key)
      letters.value = true
    }
    await press("?", { target: field({}) })
    expect(help.value).toBe(true)
    help.value = false
    await leave()
    await nothing("?")
  })
})

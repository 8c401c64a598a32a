/** The router of the console, without a browser: which page a path opens, which links it follows, and what Back does. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, Entries, leaveAll, source } from "./Modules.ts"

const { go, guardWhile, listen, page, place, refine, routeOf } = await source("router/Router.ts")

let entries: ReadonlyArray<string>
const listeners = new Map<string, (event: any) => void>()
const listening = (type: string, run: (event: any) => void) => void listeners.set(type, run)
beforeEach(async () => {
  entries = await browserAt("/keys?handle=ada")
  vi.stubGlobal("addEventListener", listening)
  vi.stubGlobal("removeEventListener", (type: string, run: unknown) => {
    if (listeners.get(type) === run) listeners.delete(type)
  })
  vi.stubGlobal("scrollY", 0)
  vi.stubGlobal("sessionStorage", new Entries())
})
afterEach(async () => {
  listeners.clear()
  await leaveAll()
  vi.unstubAllGlobals()
})

/** Asks before a page with unsaved input is left, until the function that is returned is called. */
const guarded = (answer: boolean, isUnsaved = () => true, question = (): string | undefined => "Leave?") => {
  const asked = vi.fn(() => answer)
  vi.stubGlobal("confirm", asked)
  return { asked, stop: guardWhile(isUnsaved, question) as () => void }
}

describe("A path", () => {
  const load = async () => ({ default: () => null })
  const routes = ["/", "/keys", "/identities/new", "/identities/:handle", "/identities/:handle/mail/:id", "*"].map(
    (one) => page(one, load),
  )
  it.each([
    ["/", "/", {}],
    ["/keys", "/keys", {}],
    ["/keys/", "*", {}],
    ["/identities/new", "/identities/new", {}],
    ["/identities/ada", "/identities/:handle", { handle: "ada" }],
    ["/identities/", "*", {}],
    ["/identities/ada/mail/a%2Fb%20c", "/identities/:handle/mail/:id", { handle: "ada", id: "a/b c" }],
    // The path cannot be decoded.
    ["/identities/%E0%A4%A", "*", {}],
    ["/identities/ada/mail", "*", {}],
  ])("%s opens %s with %j", (path, pattern, params) => {
    const route = routeOf(routes, path)
    expect([route.path, route.match(path)]).toEqual([pattern, params])
  })

  it("opens no page if none matches", () => expect(routeOf(routes.slice(0, 2), "/other")).toBeUndefined())

  it("loads its page once, and again after a failure", async () => {
    const loads = vi.fn(load)
    loads.mockRejectedValueOnce(new Error("lost"))
    const route = page("/keys", loads)
    await expect(route.load()).rejects.toThrow("lost")
    await Promise.all([route.load(), route.load()])
    expect(loads).toHaveBeenCalledTimes(2)
  })
})

describe("Navigation", () => {
  it("makes a history entry for another page, and none for another filter", () => {
    go("/vault?secret=a")
    expect(place.value).toEqual({ path: "/vault", search: "?secret=a" })
    refine({ secret: undefined, identity: "bob", other: "" })
    expect(place.value).toEqual({ path: "/vault", search: "?identity=bob" })
    refine({ identity: undefined })
    go("/keys", "replace")
    expect(entries).toEqual(["push /vault?secret=a", "replace /vault?identity=bob", "replace /vault", "replace /keys"])
  })

  it("asks before it leaves unsaved input, and stays if a person wants that", () => {
    const { asked, stop } = guarded(false)
    go("/vault")
    expect([entries, place.value.path, asked.mock.calls]).toEqual([[], "/keys", [["Leave?"]]])
    // Another filter of the same page loses nothing.
    refine({ handle: "bob" })
    go("/keys/?handle=cy")
    expect([entries.length, asked.mock.calls.length]).toEqual([2, 1])
    // A page below this one, and a page in its place, would lose it.
    go("/keys/devices")
    go("/vault", "replace")
    expect([entries.length, asked.mock.calls.length]).toEqual([2, 3])
    asked.mockReturnValue(true)
    go("/vault")
    expect(place.value.path).toBe("/vault")
    stop()
    go("/keys")
    expect([place.value.path, asked.mock.calls.length]).toEqual(["/keys", 4])
  })

  it("asks nothing without unsaved input or without a question", () => {
    const saved = guarded(false, () => false)
    const silent = guarded(
      false,
      () => true,
      () => undefined,
    )
    go("/vault")
    expect([place.value.path, saved.asked.mock.calls.length, silent.asked.mock.calls.length]).toEqual(["/vault", 0, 0])
    saved.stop()
    silent.stop()
  })

  it("asks by the browser before a reload only with unsaved input, also without a question", () => {
    let isUnsaved = false
    const { stop } = guarded(
      false,
      () => isUnsaved,
      () => undefined,
    )
    const preventDefault = vi.fn()
    const reload = () => listeners.get("beforeunload")?.({ preventDefault })
    reload()
    expect(preventDefault).not.toHaveBeenCalled()
    isUnsaved = true
    reload()
    expect(preventDefault).toHaveBeenCalledTimes(1)
    stop()
    reload()
    expect(preventDefault).toHaveBeenCalledTimes(1)
  })
})

describe("A listening router", () => {
  class Link {
    readonly origin: string
    readonly pathname: string
    readonly search: string
    readonly target: string
    readonly attributes: Readonly<Record<string, string>>
    constructor(href: string, attributes: Readonly<Record<string, string>> = {}) {
      const { origin, pathname, search } = new URL(href, "http://localhost")
      ;[this.origin, this.pathname, this.search] = [origin, pathname, search]
      this.attributes = attributes
      this.target = attributes["target"] ?? ""
    }
    closest() {
      return this
    }
    hasAttribute(name: string) {
      return name in this.attributes
    }
  }
  const load = vi.fn(async () => ({ default: () => null }))
  const started = () => {
    vi.stubGlobal("Element", Link)
    vi.stubGlobal("document", { addEventListener: listening })
    listen([page("/vault", load), page("*", async () => ({ default: () => null }))])
  }
  const click = (link: object, more: object = {}) => {
    const preventDefault = vi.fn()
    const plain = { button: 0, metaKey: false, ctrlKey: false, shiftKey: false, altKey: false, defaultPrevented: false }
    listeners.get("click")!({ ...plain, target: link, preventDefault, ...more })
    return preventDefault.mock.calls.length === 1
  }

  it("follows a plain click on a link of the console", () => {
    started()
    expect(click(new Link("/console/vault?secret=a"))).toBe(true)
    expect(click(new Link("/console"))).toBe(true)
    expect(entries).toEqual(["push /vault?secret=a", "push "])
    expect(place.value.path).toBe("/")
  })

  it.each([
    ["a new tab", new Link("/console/vault"), { ctrlKey: true }],
    ["a new tab on a Mac", new Link("/console/vault"), { metaKey: true }],
    ["a new window", new Link("/console/vault"), { shiftKey: true }],
    ["a download by key", new Link("/console/vault"), { altKey: true }],
    ["another button", new Link("/console/vault"), { button: 1 }],
    ["what a component handled", new Link("/console/vault"), { defaultPrevented: true }],
    ["a target", new Link("/console/vault", { target: "_blank" }), {}],
    ["a download", new Link("/console/vault", { download: "" }), {}],
    ["another origin", new Link("https://other.example/console/vault"), {}],
    ["the API", new Link("/api/exports/1/archive"), {}],
    ["a path that only begins like the console", new Link("/consoles"), {}],
    ["the frame of a message", new Link("/console/mail/ada/msg_1/body"), {}],
    ["no link", {}, {}],
  ])("leaves %s to the browser", (_, link, more) => {
    started()
    expect([click(link, more), entries]).toEqual([false, []])
  })

  it("shows the page of Back, unless a person stays with unsaved input", async () => {
    started()
    const back = async (to: string) => {
      const { pathname, search } = new URL(`/console${to}`, "http://localhost")
      vi.stubGlobal("location", { pathname, search })
      listeners.get("popstate")!({})
    }
    await back("/vault/?secret=a")
    expect(place.value).toEqual({ path: "/vault", search: "?secret=a" })
    const { asked, stop } = guarded(false)
    await back("/keys")
    expect([place.value, entries]).toEqual([{ path: "/vault", search: "?secret=a" }, ["push /vault?secret=a"]])
    asked.mockReturnValue(true)
    await back("/keys")
    expect([place.value.path, entries.length]).toEqual(["/keys", 1])
    stop()
  })

  it("loads a page when its link is pointed at, not others", async () => {
    started()
    listeners.get("pointerover")!({ target: new Link("/api/vault") })
    expect(load).not.toHaveBeenCalled()
    load.mockRejectedValueOnce(new Error("lost"))
    for (const type of ["pointerover", "focusin"]) {
      listeners.get(type)!({ target: new Link("/console/vault/") })
      // A page that cannot be loaded now is loaded when it is opened.
      await new Promise<void>((resolve) => void setImmediate(resolve))
    }
    expect([load.mock.calls.length, entries]).toEqual([2, []])
  })
})

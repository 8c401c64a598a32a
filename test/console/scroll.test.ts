/** Where a page is scrolled to after navigation, Back and a reload, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, Entries, leaveAll, source } from "./Modules.ts"

const { go, guardWhile, listen, refine } = await source("router/Router.ts")
const { scrollPage } = await source("router/Scroll.ts")

const listeners = new Map<string, (event: any) => void>()
beforeEach(async () => {
  await browserAt("/keys?handle=ada")
  vi.stubGlobal("addEventListener", (type: string, run: (event: any) => void) => void listeners.set(type, run))
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

describe("The scroll position", () => {
  const scrolled: Array<number> = []
  /** The stubs of the browser: a page can be scrolled as far as its height allows. */
  let height = 0
  let grow: (() => void) | undefined
  let travel: (by: number) => void = () => {}
  const back = () => travel(-1)
  beforeEach(() => {
    vi.useFakeTimers()
    scrolled.length = 0
    grow = undefined
    const made: Array<{ state: unknown; to: string }> = [{ state: undefined, to: "/console/keys" }]
    let at = 0
    const show = () => {
      history.state = made[at]!.state
      vi.stubGlobal("location", new URL(made[at]!.to, "http://localhost"))
    }
    const history = {
      state: undefined as unknown,
      pushState: (state: unknown, _: string, to: string) => {
        made.splice(++at, made.length, { state, to })
        show()
      },
      replaceState: (state: unknown, _: string, to = made[at]!.to) => {
        made[at] = { state, to }
        show()
      },
    }
    travel = (by) => {
      at += by
      show()
      listeners.get("popstate")!({})
    }
    vi.stubGlobal("history", history)
    vi.stubGlobal("document", {
      addEventListener: () => {},
      body: {},
      documentElement: {
        get scrollHeight() {
          return height
        },
      },
    })
    vi.stubGlobal("innerHeight", 100)
    vi.stubGlobal("scrollTo", (_: number, top: number) => {
      scrolled.push(top)
      vi.stubGlobal("scrollY", Math.min(top, height - 100))
    })
    vi.stubGlobal("ResizeObserver", function (run: () => void) {
      return { observe: () => (grow = run), disconnect: () => (grow = undefined) }
    })
    listen([])
  })
  afterEach(() => {
    // A position that is still wanted would be used by the next test that shows a page, also of another file.
    scrollPage()
    vi.runAllTimers()
    vi.useRealTimers()
  })

  const scrollBy = (top: number) => vi.stubGlobal("scrollY", top)
  const rendered = (to: number) => {
    height = to
    scrolled.length = 0
    scrollPage()
    return scrolled
  }
  /** Grows the page, and returns where it was scrolled to. */
  const grown = (to: number) => {
    height = to
    scrolled.length = 0
    grow?.()
    return scrolled
  }

  it("of a new page is its top, and Back restores that of the page before once it is high enough", () => {
    scrollBy(400)
    go("/vault")
    expect(rendered(1_000)).toEqual([0])
    expect(grow).toBeUndefined()
    scrollBy(70.4)
    back()
    expect(rendered(300)).toEqual([400])
    expect(grown(450)).toEqual([400])
    // It can still grow: the position is at the end of the page.
    expect(grown(500)).toEqual([400])
    expect(grown(900)).toEqual([400])
    expect(grow).toBeUndefined()
    travel(1)
    expect(rendered(900)).toEqual([70])
    // A page that follows without navigation, as after sign-out, begins at its top.
    expect(rendered(900)).toEqual([0])
    scrollBy(400)
    go("/activity", "replace")
    expect(rendered(900)).toEqual([0])
  })

  it.each(["wheel", "touchstart", "keydown", "pointerdown", "4 seconds"])("is left alone after %s", (type) => {
    scrollBy(400)
    go("/vault")
    back()
    rendered(300)
    vi.advanceTimersByTime(3_999)
    expect(grown(320)).toEqual([400])
    if (type === "4 seconds") vi.advanceTimersByTime(1)
    else listeners.get(type)!({})
    expect([grown(900), vi.getTimerCount()]).toEqual([[], 0])
    expect(listeners.has("keydown")).toBe(false)
  })

  it("survives a reload and a change of the query, and that of a page before a refused Back is kept", () => {
    scrollBy(400)
    refine({ handle: "bob" })
    listeners.get("pagehide")!({})
    listen([])
    expect(rendered(1_000)).toEqual([400])
    go("/vault")
    rendered(1_000)
    scrollBy(250)
    const asked = vi.fn(() => false)
    vi.stubGlobal("confirm", asked)
    const stop = guardWhile(
      () => true,
      () => "Leave?",
    )
    back()
    expect(asked).toHaveBeenCalledTimes(1)
    stop()
    go("/activity")
    rendered(1_000)
    back()
    expect(rendered(1_000)).toEqual([250])
  })

  it("is stored for 50 entries and the current one, the oldest of which are dropped", () => {
    const stored = () => Object.values(JSON.parse(sessionStorage.getItem("svc-scroll")!))
    for (let n = 1; n <= 60; n++) {
      scrollBy(n)
      go(n % 2 === 0 ? "/vault" : "/keys")
    }
    expect(stored()).toEqual(Array.from({ length: 51 }, (_, n) => n + 10))
    scrollBy(1_000)
    listeners.get("pagehide")!({})
    scrollBy(2_000)
    listeners.get("pagehide")!({})
    expect(stored().slice(-2)).toEqual([60, 2_000])
    // The entry that was left last is the newest.
    back()
    scrollBy(3_000)
    listeners.get("pagehide")!({})
    expect(stored().slice(-2)).toEqual([2_000, 3_000])
  })
})

/** What the tabs of a browser tell each other about the session, and when they open the live stream, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Entries, eventually, heldCalls, leavePage, source } from "./Modules.ts"

const { accountChanged } = await source("client/Invalidation.ts")
const session = await source("client/Session.ts")
const { place } = await source("router/Router.ts")

afterEach(leavePage)

describe("The session", () => {
  const ada = { org: { id: "org_a", language: "en" } }
  class Stream {
    static opened: Array<Stream> = []
    isOpen = true
    constructor() {
      Stream.opened.push(this)
    }
    addEventListener() {}
    close() {
      this.isOpen = false
    }
  }
  let calls: ReturnType<typeof heldCalls>
  let idle: Array<() => void>
  const heard: Array<unknown> = []
  let elsewhere: BroadcastChannel
  beforeEach(() => {
    calls = heldCalls()
    idle = []
    Stream.opened = []
    heard.length = 0
    elsewhere = new BroadcastChannel("svc-session")
    elsewhere.onmessage = ({ data }) => heard.push(data)
    vi.stubGlobal("localStorage", new Entries())
    vi.stubGlobal("document", { cookie: "svc_signed_in=1", documentElement: { lang: "" }, hidden: false })
    vi.stubGlobal("requestIdleCallback", (run: () => void) => idle.push(run))
    vi.stubGlobal("cancelIdleCallback", (id: number) => (idle[id - 1] = () => {}))
    vi.stubGlobal("EventSource", Stream)
    for (const name of ["addEventListener", "removeEventListener"]) vi.stubGlobal(name, () => {})
    const request = (_: string, __: object, run: () => Promise<void>) => run()
    vi.stubGlobal("navigator", { onLine: true, locks: { request } })
    session.state.value = { is: "unknown" }
  })
  afterEach(() => {
    session.state.value = { is: "out" }
    elsewhere.close()
  })
  const found = async () => {
    const done = session.look()
    ;(await calls.next()).answer(200, ada)
    await done
  }
  it("is announced to other tabs when it was found first, and when it ends", async () => {
    await found()
    await eventually(() => expect(heard).toEqual(["changed"]))
    heard.length = 0
    await found()
    const out = session.signOut()
    ;(await calls.next()).answer(204)
    await out
    await eventually(() => expect(heard).toEqual(["signed-out"]))
  })

  it("is looked up when another tab says that it changed, and when the account changed", async () => {
    session.state.value = { is: "in", session: ada }
    accountChanged.tell()
    ;(await calls.next()).answer(200, ada)
    elsewhere.postMessage("changed")
    const { url, answer } = await calls.next()
    answer(200, ada)
    expect([url, session.state.value.is]).toEqual(["/api/auth/session", "in"])
  })

  it.each([
    ["unknown", "/", "/vault"],
    ["out", "/", "/vault"],
    ["out", "/keys", "/keys"],
  ])("found by a tab in which it was %s at %s leads to %s", async (is, at, to) => {
    vi.stubGlobal("location", new URL("http://localhost/console/vault"))
    vi.stubGlobal("history", { state: null, replaceState: () => {} })
    session.state.value = { is }
    place.value = { path: at, search: "" }
    session.keepReturn("/vault")
    await found()
    expect(place.value.path).toBe(to)
  })

  it("opens the live stream when the browser is idle, and closes it before it ends", async () => {
    session.state.value = { is: "in", session: ada }
    session.state.value = { is: "out" }
    idle.forEach((run) => run())
    expect(Stream.opened).toEqual([])
    for (const end of [() => (session.state.value = { is: "lost", session: ada }), () => session.signOut()]) {
      session.state.value = { is: "in", session: ada }
      idle.at(-1)!()
      expect(Stream.opened.at(-1)!.isOpen).toBe(true)
      void end()
      expect(Stream.opened.at(-1)!.isOpen).toBe(false)
    }
    expect(Stream.opened.length).toBe(2)
  })
})

/** The live stream of one tab, without a browser: who opens it, what others learn, and when the service counts as lost. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { heldCalls, source } from "./Modules.ts"

const { connection, follow, onEvent, unfollow } = await source("client/Live.ts")
const { unreachable } = await source("client/Client.ts")
const { client } = await source("client/Queries.ts")
const { latest } = await source("client/Invalidation.ts")

class Stream {
  static CLOSED = 2
  static opened: Array<Stream> = []
  readyState = 1
  onopen = () => {}
  onerror = () => {}
  readonly listeners: Record<string, (message: object) => void> = {}
  constructor() {
    Stream.opened.push(this)
  }
  addEventListener(type: string, run: (message: object) => void) {
    this.listeners[type] = run
  }
  close() {
    this.readyState = 2
  }
}
const posted: Array<object> = []
let channel: { onmessage?: (message: object) => void; postMessage: (word: object) => void; close: () => void }
let isChannelClosed = false
let calls: ReturnType<typeof heldCalls>
let isHeld = true
/** Ends when the tab gives the stream up. */
let holding: Promise<void>
const windowListeners: Record<string, () => void> = {}
const stale = () => client.getQueryState(["GET /api/keys", {}])?.isInvalidated

beforeEach(() => {
  Stream.opened = []
  posted.length = 0
  isHeld = true
  calls = heldCalls()
  vi.useFakeTimers()
  vi.stubGlobal("EventSource", Stream)
  vi.stubGlobal("document", { hidden: false })
  vi.stubGlobal("addEventListener", (type: string, run: () => void) => (windowListeners[type] = run))
  vi.stubGlobal("removeEventListener", (type: string) => delete windowListeners[type])
  isChannelClosed = false
  vi.stubGlobal("BroadcastChannel", function () {
    channel = { postMessage: (word) => void posted.push(word), close: () => (isChannelClosed = true) }
    return channel
  })
  const request = (_: string, { signal }: { readonly signal: AbortSignal }, run: () => Promise<void>) =>
    (holding = isHeld
      ? run()
      : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))))
  vi.stubGlobal("navigator", { onLine: true, locks: { request } })
  client.setQueryData(["GET /api/keys", {}], { api_keys: [] })
})
afterEach(() => {
  unfollow()
  client.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
/** Responds to the request that checks whether the service can be reached. */
const checked = async (isReached: boolean) => {
  const check = calls.all.findLast(({ method }) => method === "HEAD")!
  if (isReached) check.answer(200)
  else check.lose()
  await vi.advanceTimersByTimeAsync(0)
}
const checks = () => calls.all.filter(({ method }) => method === "HEAD").length
/** Says that the browser has lost the network or has it again. */
const network = (onLine: boolean) => {
  Object.assign(navigator, { onLine })
  windowListeners[onLine ? "online" : "offline"]!()
}

describe("The live stream", () => {
  it("passes each Event on to the other tabs, and asks them nothing twice", async () => {
    follow()
    follow()
    expect([Stream.opened.length, posted]).toEqual([1, [{ ask: true }]])
    const event = { id: "evt_1", type: "api_key.created", handle: null, created_at: "2026-11-20T08:00:00Z" }
    Stream.opened[0]!.listeners["api_key.created"]!({ data: JSON.stringify(event) })
    expect([posted.at(-1), latest.value]).toEqual([{ event }, event])
    await vi.advanceTimersByTimeAsync(150)
    expect(stale()).toBe(true)
  })

  it("reads everything again when it was interrupted, in every tab, and not when it opens at first", async () => {
    follow()
    const [stream] = Stream.opened
    stream!.onopen()
    expect([connection.value, stale(), posted]).toEqual(["live", false, [{ ask: true }, { state: "live" }]])
    stream!.onerror()
    expect(connection.value).toBe("connecting")
    stream!.onopen()
    expect([connection.value, stale(), posted.at(-1)]).toEqual(["live", true, { changes: null }])
    // The browser reopens an interrupted stream.
    await vi.advanceTimersByTimeAsync(1_000)
    expect(Stream.opened.length).toBe(1)
  })

  it("is opened again later if the service rejects it", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5)
    follow()
    Stream.opened[0]!.readyState = Stream.CLOSED
    Stream.opened[0]!.onerror()
    await checked(true)
    await vi.advanceTimersByTimeAsync(1_999)
    expect(Stream.opened.length).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(Stream.opened.length).toBe(2)
    vi.restoreAllMocks()
  })

  it("is opened again at least every 30 seconds, however often it was rejected", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5)
    follow()
    for (const [at, seconds] of [2, 4, 8, 16, 30, 30].entries()) {
      Stream.opened[at]!.readyState = Stream.CLOSED
      Stream.opened[at]!.onerror()
      await checked(true)
      await vi.advanceTimersByTimeAsync(seconds * 1_000 - 1)
      expect(Stream.opened.length).toBe(at + 1)
      await vi.advanceTimersByTimeAsync(1)
      expect(Stream.opened.length).toBe(at + 2)
    }
    // A stream that was open begins again with the shortest pause.
    const last = Stream.opened.at(-1)!
    last.onopen()
    last.readyState = Stream.CLOSED
    last.onerror()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(Stream.opened.length).toBe(8)
    vi.restoreAllMocks()
  })

  it.each([
    [59_999, true],
    [60_000, false],
  ])("is caught up by the Events of the last minute: %d milliseconds, %s", async (age, isCaughtUp) => {
    follow()
    Stream.opened[0]!.onopen()
    const { url, answer } = await calls.next()
    expect(url).toBe("/api/events?limit=20")
    const created_at = new Date(Date.now() - age).toISOString()
    answer(200, { events: [{ id: "evt_1", type: "api_key.created", handle: null, created_at }] })
    await vi.advanceTimersByTimeAsync(0)
    vi.setSystemTime(Date.now() + 150)
    await vi.advanceTimersByTimeAsync(150)
    expect(stale()).toBe(isCaughtUp)
    // An interrupted stream sends its Events again.
    Stream.opened[0]!.onerror()
    Stream.opened[0]!.onopen()
    await vi.advanceTimersByTimeAsync(0)
    expect(calls.all.filter(({ method }) => method === "GET").length).toBe(1)
  })

  it("counts as lost without a check while the browser has no network, and is not checked after it was left", async () => {
    follow()
    Stream.opened[0]!.onopen()
    Object.assign(navigator, { onLine: false })
    await vi.advanceTimersByTimeAsync(1_500)
    expect(connection.value).toBe("offline")
    Object.assign(navigator, { onLine: true })
    unfollow()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(calls.all.filter(({ method }) => method === "HEAD")).toEqual([])
  })

  it("that is silent is checked after 1.5 seconds, and replaced after the service was lost", async () => {
    follow()
    Stream.opened[0]!.onopen()
    await vi.advanceTimersByTimeAsync(1_000)
    Stream.opened[0]!.listeners["beat"]!({ data: "{}" })
    await vi.advanceTimersByTimeAsync(1_499)
    expect(calls.all.some(({ method }) => method === "HEAD")).toBe(false)
    await vi.advanceTimersByTimeAsync(501)
    await checked(false)
    expect([connection.value, posted.at(-1)]).toEqual(["offline", { state: "offline" }])
    await vi.advanceTimersByTimeAsync(1_500)
    await checked(true)
    expect([connection.value, Stream.opened.length, Stream.opened[0]!.readyState]).toEqual([
      "connecting",
      2,
      Stream.CLOSED,
    ])
  })

  it("that has a beat while its check fails does not count as lost", async () => {
    follow()
    Stream.opened[0]!.onopen()
    await vi.advanceTimersByTimeAsync(1_500)
    Stream.opened[0]!.listeners["beat"]!({ data: "{}" })
    await checked(false)
    expect(connection.value).toBe("live")
    await vi.advanceTimersByTimeAsync(1_500)
    await checked(false)
    expect(connection.value).toBe("offline")
  })

  it("is not checked in a tab that is hidden", async () => {
    follow()
    Object.assign(document, { hidden: true })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(calls.all.filter(({ method }) => method === "HEAD")).toEqual([])
  })

  it("is checked once at a time, for a second, and again 6.5 seconds after a response", async () => {
    vi.spyOn(AbortSignal, "timeout").mockImplementation((millis) => {
      const stopped = new AbortController()
      setTimeout(() => stopped.abort(), millis)
      return stopped.signal
    })
    follow()
    Stream.opened[0]!.onopen()
    await vi.advanceTimersByTimeAsync(2_499)
    expect([checks(), connection.value]).toEqual([1, "live"])
    await vi.advanceTimersByTimeAsync(1)
    expect(connection.value).toBe("offline")
    await vi.advanceTimersByTimeAsync(500)
    await checked(true)
    expect([checks(), Stream.opened.length]).toEqual([2, 2])
    await vi.advanceTimersByTimeAsync(6_499)
    expect(checks()).toBe(2)
    await vi.advanceTimersByTimeAsync(1)
    expect(checks()).toBe(3)
    vi.restoreAllMocks()
  })

  it.each([
    ["the network is lost and found", () => (network(false), network(true))],
    ["a call gets no response", () => unreachable.tell()],
  ])("is checked when %s", async (_, happen) => {
    follow()
    Stream.opened[0]!.onopen()
    expect(checks()).toBe(0)
    happen()
    expect(checks()).toBe(1)
    await checked(false)
    // A failure of the stream is no news then.
    Stream.opened[0]!.onerror()
    expect([connection.value, posted.at(-1)]).toEqual(["offline", { state: "offline" }])
  })

  it("announces changes and its state to the tabs that have no stream", async () => {
    follow()
    network(false)
    channel.onmessage!({ data: { ask: true } })
    expect(posted).toEqual([{ ask: true }, { state: "offline" }, { state: "offline" }])
    const word = { changes: [{ resource: "api_keys", handle: null }] }
    Stream.opened[0]!.listeners["changed"]!({ data: JSON.stringify(word) })
    expect(posted.slice(-2)).toEqual([word, { state: "live" }])
    await vi.advanceTimersByTimeAsync(150)
    expect(stale()).toBe(true)
  })

  it("is closed with everything that belongs to it, and another tab may hold it", async () => {
    const timers = vi.getTimerCount()
    follow()
    Stream.opened[0]!.onopen()
    let isHolding = true
    void holding.then(() => (isHolding = false))
    await vi.advanceTimersByTimeAsync(0)
    expect(isHolding).toBe(true)
    unreachable.tell()
    unfollow()
    await checked(false)
    expect([isHolding, isChannelClosed, Stream.opened[0]!.readyState]).toEqual([false, true, Stream.CLOSED])
    expect([connection.value, windowListeners, vi.getTimerCount()]).toEqual(["connecting", {}, timers])
    unreachable.tell()
    expect(checks()).toBe(1)
  })
})

it("An Event is announced to those who listen from then on", () => {
  const event = (id: string) => ({ id, type: "api_key.created", handle: null, created_at: "" })
  const heard: Array<string> = []
  latest.value = event("before")
  const stop = onEvent(({ id }: { readonly id: string }) => heard.push(id))
  latest.value = event("one")
  latest.value = event("two")
  stop()
  latest.value = event("after")
  expect(heard).toEqual(["one", "two"])
})

describe("A tab without the stream", () => {
  it("learns the state, Events and changes from the tab that has it", async () => {
    isHeld = false
    follow()
    expect(Stream.opened).toEqual([])
    channel.onmessage!({ data: { state: "live" } })
    expect([connection.value, posted]).toEqual(["live", [{ ask: true }]])
    channel.onmessage!({ data: { changes: [{ resource: "api_keys", handle: null }] } })
    await vi.advanceTimersByTimeAsync(150)
    expect(stale()).toBe(true)
    // Only the tab with the stream answers.
    channel.onmessage!({ data: { ask: true } })
    network(false)
    expect([connection.value, posted]).toEqual(["offline", [{ ask: true }]])
    network(true)
    await checked(true)
    expect([connection.value, posted, Stream.opened]).toEqual(["connecting", [{ ask: true }], []])
    network(false)
    channel.onmessage!({ data: { beat: true } })
    expect(connection.value).toBe("live")
    // It no longer waits for the stream after it was left.
    unfollow()
    await expect(holding).rejects.toMatchObject({ name: "AbortError" })
  })
})

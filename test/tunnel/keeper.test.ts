import { Duplex } from "node:stream"
import { makeLink } from "@svc/tunnel-edge/protocol/Link"
import { kind, limits, timing } from "@svc/tunnel-edge/protocol/Manifest"
import { afterEach, beforeEach, expect, it, vi } from "vitest"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setImmediate", "performance"] }))
afterEach(() => void vi.useRealTimers())

/** A link to a suspended peer: it accepts data unless it is `full`, and nothing is received from it. */
const frozen = (full = false, head = Buffer.alloc(0)) => {
  let why: string | undefined
  const hellos: Array<unknown> = []
  const written: Array<Buffer> = []
  const carrier = new Duplex({
    read: () => {},
    write: (chunk, _, done) => (written.push(chunk), full ? undefined : done()),
    ...(full ? { highWaterMark: 1 } : {}),
  })
  const link = makeLink(carrier, head, true, {
    open: () => {},
    hello: (hello) => hellos.push(hello),
    goaway: () => {},
    close: (reason) => (why = reason),
  })
  const pass = (millis: number) => {
    for (let at = 0; at < millis; at += 100) vi.advanceTimersByTime(100)
    return why
  }
  return { link, pass, carrier, written, hellos }
}

it("closes a silent link after 10 s with open streams, and after 30 s without", () => {
  const idle = frozen()
  expect(idle.pass(timing.silenceMillis - 1_000)).toBeUndefined()
  expect(idle.pass(2_000)).toBe("silence")

  const pinged = frozen()
  pinged.pass(12_000)
  pinged.link.mux.open(kind.http, 0, Buffer.from("{}"))
  expect(pinged.pass(timing.answerMillis - 500)).toBeUndefined()
  expect(pinged.pass(10_000 - timing.answerMillis + 500)).toBe("silence")
})

const pong = Buffer.concat([Buffer.from([7, 0, 0, 8, 0, 0, 0, 0]), Buffer.alloc(8)])

it("pings every 15 s, after 2 s of silence with open streams, and never after its close", () => {
  const idle = frozen()
  for (let at = 0; at < 60; at++) {
    idle.carrier.emit("data", pong)
    idle.pass(1_000)
  }
  idle.pass(100)
  expect(idle.written).toHaveLength(1 + 60_000 / timing.pingMillis)

  const busy = frozen()
  busy.link.mux.open(kind.http, 0, Buffer.from("{}"))
  busy.pass(1_900)
  const before = Buffer.concat(busy.written).length
  expect(busy.pass(timing.answerMillis)).toBeUndefined()
  expect(Buffer.concat(busy.written).length - before).toBe(pong.length)
  busy.link.close("enough")
  idle.link.close("enough")
  expect(vi.getTimerCount()).toBe(0)
})

it("pings its peer first, and reads what arrived with the upgrade", async () => {
  const { hellos, pass, written } = frozen(false, Buffer.from([0, 0, 0, 2, 0, 0, 0, 0, ...Buffer.from("{}")]))
  // Its owner has the link before the first event.
  expect(hellos).toEqual([])
  await Promise.resolve()
  expect(hellos).toEqual([{}])
  pass(100)
  expect(Buffer.concat(written).subarray(0, 8)).toEqual(Buffer.from([6, 0, 0, 8, 0, 0, 0, 0]))
})

it("ends its carrier when it closes, and closes with its carrier", () => {
  const { link, carrier, pass } = frozen()
  link.close("enough")
  expect([carrier.writableEnded, pass(0)]).toEqual([true, "enough"])
  for (const event of ["end", "close"]) {
    const { carrier, pass } = frozen()
    carrier.emit(event)
    expect(pass(0)).toBe("closed")
  }
})

it("closes a link that accepts no data for 20 s, though its peer sends", () => {
  const stalled = (drainsAfter?: number) => {
    const { pass, carrier } = frozen(true)
    for (let at = 0; at < 60; at++) {
      carrier.emit("data", pong)
      if (at === drainsAfter) carrier.emit("drain")
      const why = pass(1_000)
      if (why !== undefined) return [at + 1, why]
    }
    return undefined
  }
  expect(stalled()).toEqual([timing.stalledMillis / 1_000, "stalled"])
  // The next ping, 15 s after the first, blocks it again.
  expect(stalled(10)).toEqual([(timing.pingMillis + timing.stalledMillis) / 1_000 + 1, "stalled"])
})

it("keeps a link whose peer answers pings, however long a request takes", () => {
  const { link, pass, carrier } = frozen()
  link.mux.open(kind.http, 0, Buffer.from("{}"))
  for (let at = 0; at < 60_000; at += 5_000) {
    carrier.emit("data", pong)
    expect(pass(5_000)).toBeUndefined()
  }
})

it("does not treat a suspension of its own process as a silent peer", () => {
  const { link, pass } = frozen()
  link.mux.open(kind.http, 0, Buffer.from("{}"))
  expect(pass(3_000)).toBeUndefined()
  vi.setSystemTime(Date.now())
  vi.advanceTimersToNextTimer()
  const before = performance.now()
  vi.spyOn(performance, "now").mockImplementationOnce(() => before + 25_000)
  vi.advanceTimersByTime(500)
  expect(pass(1_000)).toBeUndefined()
})

it("closes a link whose peer keeps sending and does not read the replies", () => {
  const ping = Buffer.concat([Buffer.from([6, 0, 0, 8, 0, 0, 0, 0]), Buffer.alloc(8)])
  for (const [unread, reason] of [
    [limits.queuedBytes, undefined],
    [limits.queuedBytes + 1, "takes no answers"],
  ] as const) {
    const { carrier, pass } = frozen()
    Object.defineProperty(carrier, "writableLength", { get: () => unread })
    carrier.emit("data", ping)
    expect(pass(100)).toBe(reason)
  }
})

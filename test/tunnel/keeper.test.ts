import { Duplex } from "node:stream"
import { makeLink } from "@svc/tunnel-edge/protocol/Link"
import { kind, limits, timing } from "@svc/tunnel-edge/protocol/Manifest"
import { afterEach, beforeEach, expect, it, vi } from "vitest"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setImmediate", "performance"] }))
afterEach(() => void vi.useRealTimers())

/** A link to a suspended peer: it accepts data, and nothing is received from it. */
const frozen = () => {
  let why: string | undefined
  const carrier = new Duplex({ read: () => {}, write: (_, __, done) => done() })
  const link = makeLink(carrier, Buffer.alloc(0), true, {
    open: () => {},
    hello: () => {},
    goaway: () => {},
    close: (reason) => (why = reason),
  })
  const pass = (millis: number) => {
    for (let at = 0; at < millis; at += 100) vi.advanceTimersByTime(100)
    return why
  }
  return { link, pass, carrier }
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

it("keeps a link whose peer answers pings, however long a request takes", () => {
  const { link, pass, carrier } = frozen()
  link.mux.open(kind.http, 0, Buffer.from("{}"))
  const pong = Buffer.concat([Buffer.from([7, 0, 0, 8, 0, 0, 0, 0]), Buffer.alloc(8)])
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

/** The limits of a WebSocket of another server: messages and bytes per ten seconds, the size of a message, and silence. */
import type { AddressInfo } from "node:net"
import * as GuardedSocket from "@svc/cluster/net/GuardedSocket"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Fiber } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type WebSocket, WebSocketServer } from "ws"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }))
const closing: Array<() => void> = []
afterEach(() => {
  vi.useRealTimers()
  for (const close of closing.splice(0)) close()
})

/** Opens a socket to a server of this test. `got` has what arrived, `ended` why the socket closed. */
const opened = async ({ atMost = 1024 * 1024, autoPong = true } = {}) => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong, perMessageDeflate: true })
  closing.push(() => server.close())
  const got: Array<string> = []
  const seen = { protocol: "", pings: 0, pongs: 0, closed: false, headers: {} as Record<string, unknown> }
  const connected = new Promise<WebSocket>((resolve) =>
    server.on("connection", (socket, { headers }) => {
      Object.assign(seen, { headers, protocol: socket.protocol })
      socket.on("ping", () => seen.pings++).on("pong", () => seen.pongs++)
      socket.on("close", () => (seen.closed = true)).on("error", () => {})
      resolve(socket)
    }),
  )
  await new Promise((resolve) => server.on("listening", resolve))
  let opens = 0
  const listening = {
    protocols: ["one", "two"],
    headers: { "x-given": "1" },
    atMost,
    opened: () => opens++,
    message: (text: string) => got.push(text),
  }
  const lookup = () => expect.fail("a literal address is not looked up")
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/path`)
  const fiber = Effect.runFork(Effect.flip(GuardedSocket.listen(url, listening, lookup)))
  const ended = Effect.runPromise(Effect.exit(Fiber.join(fiber)))
  const socket = await connected
  await vi.waitFor(() => expect(opens).toBe(1))
  return {
    socket,
    got,
    seen,
    fiber,
    ended: async () => ((await ended) as { readonly value?: unknown }).value,
    isOpen: () => fiber.pollUnsafe() === undefined,
  }
}
const sent = (socket: WebSocket, messages: ReadonlyArray<string | Buffer>) =>
  Promise.all(messages.map((message) => new Promise<void>((resolve) => socket.send(message, () => resolve()))))

describe("A socket of another server", () => {
  it("delivers texts in order, not binary data, and answers pings", async () => {
    const { socket, got, seen, ended } = await opened()
    await sent(socket, ["a", Buffer.from("binary"), "é"])
    socket.ping()
    await vi.waitFor(() => expect(seen.pongs).toBe(1))
    expect(got).toEqual(["a", "é"])
    expect([seen.protocol, seen.headers["x-given"], seen.headers["sec-websocket-extensions"]]).toEqual([
      "one",
      "1",
      undefined,
    ])
    socket.close(1000)
    expect(await ended()).toBe("connection")
  })

  it("may send 500 messages in ten seconds, and is closed at the next one", async () => {
    const { socket, got, ended } = await opened()
    const many = Array.from({ length: 500 }, (_, n) => String(n))
    await sent(socket, many)
    await vi.waitFor(() => expect(got).toHaveLength(500))
    vi.advanceTimersByTime(Timing.socketWindowMillis)
    await sent(socket, many)
    await vi.waitFor(() => expect(got).toHaveLength(1_000))
    // Pings and pongs count as well.
    socket.ping()
    socket.send("after the end")
    expect(await ended()).toBe("too_large")
    expect(got).toHaveLength(1_000)
  })

  it("may send 1 MiB in ten seconds, and is closed beyond it", async () => {
    const { socket, got, isOpen, ended } = await opened()
    const half = "x".repeat(500_000)
    for (const count of [2, 4]) {
      await sent(socket, [half, half])
      await vi.waitFor(() => expect(got).toHaveLength(count))
      expect(isOpen()).toBe(true)
      vi.advanceTimersByTime(Timing.socketWindowMillis)
    }
    await sent(socket, [half, half, "x".repeat(50_000)])
    expect(await ended()).toBe("too_large")
  })

  it("is closed by a message above its maximum size", async () => {
    const { socket, got, ended } = await opened({ atMost: 10 })
    await sent(socket, ["x".repeat(10), "x".repeat(11)])
    expect([await ended(), got]).toEqual(["too_large", ["x".repeat(10)]])
  })

  it("is pinged every 30 seconds, and closed after 75 seconds without data", async () => {
    const alive = await opened()
    for (let pings = 1; pings <= 4; pings++) {
      vi.advanceTimersByTime(Timing.socketPingMillis)
      await vi.waitFor(() => expect(alive.seen.pings).toBe(pings))
      // The pong has arrived when the next message has.
      await sent(alive.socket, ["x"])
      await vi.waitFor(() => expect(alive.got).toHaveLength(pings))
    }
    expect(alive.isOpen()).toBe(true)
    const silent = await opened({ autoPong: false })
    vi.advanceTimersByTime(2 * Timing.socketPingMillis)
    expect(silent.isOpen()).toBe(true)
    vi.advanceTimersByTime(Timing.socketPingMillis)
    await vi.waitFor(() => expect(silent.isOpen()).toBe(false))
    expect(await silent.ended()).toBe("timeout")
    await vi.waitFor(() => expect(silent.seen.closed).toBe(true))
  })

  it("is closed when its reader is interrupted, and checks nothing afterwards", async () => {
    const { fiber, seen } = await opened()
    await Effect.runPromise(Fiber.interrupt(fiber))
    await vi.waitFor(() => expect(seen.closed).toBe(true))
    expect(vi.getTimerCount()).toBe(0)
  })
})

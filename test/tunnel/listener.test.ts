import { once } from "node:events"
import { connect, type AddressInfo } from "node:net"
import * as Listener from "@svc/tunnel-edge/edge/listening/Listener"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { afterEach, expect, it, vi } from "vitest"

afterEach(() => void vi.useRealTimers())

it("disconnects a TLS client that sends its ClientHello slowly, and enforces the connection limit", async () => {
  let admits = true
  const listener = Listener.make(selfSigned(["*.tunnel.localhost"], new Date()), false, {
    balancers: [],
    admit: () => admits,
    http: () => {},
    passesThrough: async () => false,
    passthrough: () => {},
  })
  await new Promise<void>((resolve) => listener.server.listen(0, "127.0.0.1", resolve))
  const { port } = listener.server.address() as AddressInfo
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const drip = connect(port, "127.0.0.1")
  drip.on("error", () => {})
  const [[taken]] = await Promise.all([once(listener.server, "connection"), once(drip, "connect")])
  const closed = new Promise<void>((resolve) => drip.once("close", () => resolve()))
  const arrived = async (bytes: number) => {
    while (taken.bytesRead < bytes) await new Promise((resolve) => setImmediate(resolve))
  }
  // A TLS record of 512 bytes, of which a few arrive at a time, so that the connection is never idle for long.
  drip.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 252]))
  await arrived(9)
  // The edge has set the deadline for the TLS hello by then.
  await new Promise((resolve) => setImmediate(resolve))
  vi.advanceTimersByTime(Timing.helloMillis - 1)
  drip.write(Buffer.from([3]))
  await arrived(10)
  expect(taken.destroyed).toBe(false)
  vi.advanceTimersByTime(1)
  await closed
  vi.useRealTimers()

  admits = false
  const surplus = connect(port, "127.0.0.1")
  surplus.on("error", () => {})
  await new Promise<void>((resolve) => surplus.once("close", () => resolve()))
  listener.server.close()
})

/** A connection to a mail server outlives the time limits of its steps. */
import { createServer, type Server, type Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { Wire } from "@svc/mail-gateway/mail/sending/smtp/Wire"
import { Effect } from "effect"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { certificate } from "./Sinks.ts"

const millis = 60_000
let server: Server
let port: number
const sockets: Array<Socket> = []

beforeAll(async () => {
  // Every connection speaks TLS from its first byte, and answers each line.
  server = createServer((plain) => {
    const socket = new TLSSocket(plain, { isServer: true, ...certificate })
    socket.on("data", () => socket.write("250 ok\r\n")).on("error", () => {})
    sockets.push(plain)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  port = typeof address === "object" && address !== null ? address.port : 0
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
afterEach(() => void vi.useRealTimers())

const options = { rejectUnauthorized: false }
const address = () => ({ host: "127.0.0.1", port })

describe("A connection to a mail server", () => {
  it.each([
    ["TLS from the beginning", () => Wire.open(address(), millis, options)],
    ["STARTTLS", () => Effect.tap(Wire.open(address(), millis), (wire) => wire.secure(options, millis))],
  ])("stays open after the time limit of each step has passed: %s", async (_, opened) => {
    const wire = await Effect.runPromise(opened())
    await vi.advanceTimersByTimeAsync(2 * millis)
    expect([wire.isOpen, wire.isSecure]).toEqual([true, true])
    const reply = Effect.runPromise(Effect.andThen(wire.write(Buffer.from("NOOP\r\n"), millis), wire.reply(millis)))
    expect(await reply).toMatchObject({ code: 250 })
    await vi.advanceTimersByTimeAsync(2 * millis)
    expect(wire.isOpen).toBe(true)
    wire.close()
  })
})

/** The connection of a mail program: its time limits, compression, and how it ends. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { connect as connectTls, createSecureContext } from "node:tls"
import { deflateRawSync, inflateRawSync } from "node:zlib"
import { Wire } from "@svc/mail-gateway/mail/imap/server/Wire"
import { Timing } from "@svc/mail-gateway/Timing"
import { Effect, Exit } from "effect"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { holdTimers } from "../../harness/HeldTimers.ts"
import { patience } from "../../harness/Eventually.ts"
import { certificate } from "../sending/Sinks.ts"

let server: Server
let port: number
const arrived: Array<(socket: Socket) => void> = []
const open: Array<Socket> = []
beforeAll(async () => {
  server = createServer((socket) => arrived.shift()!(socket))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  port = (server.address() as { port: number }).port
})
afterAll(() => server.close())

let timers: ReturnType<typeof holdTimers>
beforeEach(() => {
  timers = holdTimers("mail-gateway", 2_000)
})
afterEach(() => {
  timers.restore()
  for (const socket of open.splice(0)) socket.destroy()
})

/** Connects a client. Its end is only closed by the test. */
const connected = async () => {
  const accepted = new Promise<Socket>((resolve) => arrived.push(resolve))
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
  client.on("error", () => {})
  open.push(client)
  return { client, wire: new Wire(await accepted) }
}

const ended = (socket: Socket) => new Promise((resolve) => socket.once("end", resolve).resume())

/** More than the buffers of both ends hold. */
const flood = Buffer.alloc(32 * 1024 * 1024)
const context = createSecureContext(certificate)

describe("A client that does not read", () => {
  it("is disconnected when its time is over", async () => {
    const { client, wire } = await connected()
    client.pause()
    const written = Effect.runPromiseExit(wire.write(flood))
    expect(timers.running()).toEqual([Timing.imapUnreadMillis])
    timers.fire(Timing.imapUnreadMillis)
    expect(Exit.isFailure(await written)).toBe(true)
    await vi.waitUntil(() => wire.isClosed, patience)
    expect(Exit.isFailure(await Effect.runPromiseExit(wire.write("x")))).toBe(true)
  })

  it.each([
    ["plain", false],
    ["compressed", true],
  ])("has no time limit after it has read everything: %s", async (_, compressed) => {
    const { client, wire } = await connected()
    if (compressed) wire.compress(Buffer.alloc(0))
    client.pause()
    const bytes = compressed ? crypto.getRandomValues(Buffer.alloc(60_000)) : flood
    const written = Effect.runPromiseExit(
      Effect.forEach(Array.from({ length: compressed ? 150 : 1 }), () => wire.write(bytes), { discard: true }),
    )
    await vi.waitUntil(() => timers.running().length === 1, patience)
    client.resume()
    expect(Exit.isSuccess(await written)).toBe(true)
    expect(timers.running()).toEqual([])
    expect(Exit.isSuccess(await Effect.runPromiseExit(wire.write("x")))).toBe(true)
    expect([client.destroyed, wire.isClosed]).toEqual([false, false])
  })

  it("that disconnects ends the write", async () => {
    const { client, wire } = await connected()
    client.pause()
    const written = Effect.runPromiseExit(wire.write(flood))
    client.destroy()
    expect([Exit.isFailure(await written), timers.running()]).toEqual([true, []])
  })
})

describe("A TLS handshake", () => {
  it("is limited, and the connection is not", async () => {
    const { client, wire } = await connected()
    const secured = Effect.runPromise(wire.secure(context))
    expect(timers.running()).toEqual([Timing.imapHandshakeMillis])
    const encrypted = connectTls({ socket: client, rejectUnauthorized: false })
    await secured
    expect(timers.running()).toEqual([])
    encrypted.write("hello")
    expect((await Effect.runPromise(wire.read))?.toString()).toBe("hello")
    encrypted.destroy()
    expect(await Effect.runPromise(wire.read)).toBeUndefined()
  })

  it.each([
    ["that takes too long", () => timers.fire(Timing.imapHandshakeMillis)],
    ["that the client breaks off", (client: Socket) => client.destroy()],
    ["that is not TLS", (client: Socket) => client.write("a LOGIN ada x\r\n")],
  ])("%s closes the connection", async (_, act) => {
    const { client, wire } = await connected()
    client.resume().once("end", () => client.end())
    const secured = Effect.runPromiseExit(wire.secure(context))
    act(client)
    expect(Exit.isFailure(await secured)).toBe(true)
    await vi.waitUntil(() => wire.isClosed, patience)
    expect(timers.running()).toEqual([])
  })
})

describe("A compressed connection", () => {
  const read = (wire: Wire) => Effect.runPromise(wire.read).then((bytes) => bytes?.toString())

  it("inflates what followed the command, and sends each response without waiting for more", async () => {
    const { client, wire } = await connected()
    const sent = deflateRawSync(Buffer.from("b NOOP\r\nc NOOP\r\n"), { finishFlush: 2 })
    wire.compress(sent.subarray(0, 5))
    client.write(sent.subarray(5))
    let text = ""
    for (let more = await read(wire); more !== undefined; more = await read(wire)) {
      text += more
      if (text.includes("c NOOP")) break
    }
    expect(text).toBe("b NOOP\r\nc NOOP\r\n")
    await Effect.runPromise(wire.write("c OK\r\n"))
    const response = await new Promise<Buffer>((resolve) => client.once("data", resolve))
    expect(inflateRawSync(response, { finishFlush: 2 }).toString()).toBe("c OK\r\n")
  })

  it("sends everything, and the end of the compressed data, before it closes", async () => {
    const { client, wire } = await connected()
    wire.compress(Buffer.alloc(0))
    const received: Array<Buffer> = []
    client.on("data", (chunk: Buffer) => received.push(chunk))
    await Effect.runPromise(Effect.andThen(wire.write("* BYE\r\n"), wire.end))
    await ended(client)
    expect(inflateRawSync(Buffer.concat(received)).toString()).toBe("* BYE\r\n")
    client.end()
    await vi.waitUntil(() => wire.isClosed, patience)
  })

  it("closes if its input is not compressed data", async () => {
    const { client, wire } = await connected()
    wire.compress(Buffer.alloc(0))
    client.write("b NOOP\r\n".repeat(10))
    expect(await read(wire)).toBeUndefined()
    await vi.waitUntil(() => wire.isClosed, patience)
    expect(Exit.isFailure(await Effect.runPromiseExit(wire.write("x")))).toBe(true)
  })

  it("reads an end if the client disconnects", async () => {
    const { client, wire } = await connected()
    wire.compress(Buffer.alloc(0))
    const next = read(wire)
    client.destroy()
    expect(await next).toBeUndefined()
  })
})

describe("A connection that the service ends", () => {
  it.each([
    ["plain", false],
    ["compressed", true],
  ])("is destroyed if the client keeps it open: %s", async (_, compressed) => {
    const { client, wire } = await connected()
    if (compressed) wire.compress(Buffer.alloc(0))
    await Effect.runPromise(wire.end)
    await ended(client)
    expect([wire.isClosed, timers.running()]).toEqual([false, [2_000]])
    timers.fire(2_000)
    await vi.waitUntil(() => wire.isClosed, patience)
  })
})

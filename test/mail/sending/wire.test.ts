/** A connection to a mail server: the time limits of its steps, which it outlives, and how it ends. */
import { createServer, type Server, type Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { Wire } from "@svc/mail-gateway/mail/sending/smtp/Wire"
import * as Reply from "@svc/mail-gateway/mail/sending/smtp/Reply"
import { Effect, Fiber } from "effect"
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

/** Waits without timers, which the tests fire. */
const until = async (isTrue: () => boolean) => {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}

/** A server that does what a test says, and the sockets that it has. */
const plainServer = async (act: (socket: Socket) => void) => {
  const accepted: Array<Socket> = []
  const server = createServer((socket) => {
    socket.on("error", () => {})
    accepted.push(socket)
    act(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const found = server.address()
  return {
    at: { host: "127.0.0.1", port: typeof found === "object" && found !== null ? found.port : 0 },
    accepted,
    [Symbol.dispose]: () => {
      for (const socket of accepted) socket.destroy()
      server.close()
    },
  }
}

const message = (work: Effect.Effect<unknown, { readonly message: string }>) =>
  Effect.runPromise(Effect.match(work, { onSuccess: () => "success", onFailure: (error) => error.message }))

describe("A step with a mail server that does not respond", () => {
  const silence = "The server did not respond for 60 s"
  it.each([
    ["a TLS handshake at the beginning", (at: ReturnType<typeof address>) => Wire.open(at, millis, options)],
    [
      "STARTTLS",
      (at: ReturnType<typeof address>) =>
        Effect.flatMap(Wire.open(at, 5 * millis), (wire) => wire.secure(options, millis)),
    ],
    [
      "a reply",
      (at: ReturnType<typeof address>) => Effect.flatMap(Wire.open(at, 5 * millis), (wire) => wire.reply(millis)),
    ],
  ])("ends after its time limit and closes the connection: %s", async (_, step) => {
    using silent = await plainServer((socket) => socket.resume())
    let outcome: string | undefined
    const ended = message(step(silent.at)).then((text) => (outcome = text))
    await until(() => silent.accepted.length === 1 && vi.getTimerCount() > 0)
    // The connection is made before the last step starts.
    await new Promise((resolve) => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(millis - 1)
    expect(outcome).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    await ended
    expect(outcome).toBe(silence)
    await until(() => silent.accepted[0]!.destroyed || silent.accepted[0]!.readableEnded)
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([
    ["connecting", (at: ReturnType<typeof address>) => Wire.open(at, millis, options)],
    [
      "STARTTLS",
      (at: ReturnType<typeof address>) => Effect.flatMap(Wire.open(at, millis), (wire) => wire.secure(options, millis)),
    ],
    [
      "a reply",
      (at: ReturnType<typeof address>) => Effect.flatMap(Wire.open(at, millis), (wire) => wire.reply(millis)),
    ],
    [
      "content",
      (at: ReturnType<typeof address>) =>
        Effect.flatMap(Wire.open(at, millis), (wire) => wire.write(Buffer.alloc(50_000_000), millis)),
    ],
  ])("closes the connection if it is interrupted: %s", async (name, step) => {
    using silent = await plainServer((socket) => void (name === "content" ? socket.pause() : socket.resume()))
    const fiber = Effect.runFork(step(silent.at))
    await until(() => silent.accepted.length === 1 && vi.getTimerCount() > 0)
    await new Promise((resolve) => setImmediate(resolve))
    await Effect.runPromise(Fiber.interrupt(fiber))
    silent.accepted[0]!.resume()
    await until(() => silent.accepted[0]!.destroyed || silent.accepted[0]!.readableEnded)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe("Content that a mail server", () => {
  it.each([
    ["does not read", (socket: Socket) => void socket.pause(), "The server accepted no data for 60 s"],
    ["reads", (socket: Socket) => void socket.resume(), "success"],
    [
      "does not want",
      (socket: Socket) => void setImmediate(() => socket.resetAndDestroy()),
      "The server closed the connection",
    ],
  ])("%s is written until its time limit", async (name, act, reason) => {
    using server = await plainServer(act)
    const wire = await Effect.runPromise(Wire.open(server.at, millis))
    let outcome: string | undefined
    const ended = message(wire.write(Buffer.alloc(20_000_000), millis)).then((text) => (outcome = text))
    if (name === "does not read") {
      await until(() => vi.getTimerCount() > 0)
      await vi.advanceTimersByTimeAsync(millis - 1)
      expect(outcome).toBeUndefined()
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(await ended).toBe(reason)
    expect([wire.isOpen, vi.getTimerCount()]).toEqual([name === "reads", 0])
    wire.close()
  })
})

describe("A connection that has ended", () => {
  it.each([
    ["by the server", (socket: Socket) => socket.end(), "The server closed the connection"],
    ["by a reset", (socket: Socket) => socket.resetAndDestroy(), "The server closed the connection"],
    [
      "after text that is no reply",
      (socket: Socket) => socket.write("hello\r\n"),
      "The server does not speak SMTP: not an SMTP reply",
    ],
    [
      "after a line without an end",
      (socket: Socket) => socket.write("2".repeat(5_000)),
      "The server does not speak SMTP: a line is too long",
    ],
    [
      "after too many replies",
      (socket: Socket) => socket.write("250 ok\r\n".repeat(1_002)),
      "The server sent too many replies",
    ],
  ])("fails every step with the reason: %s", async (_, act, reason) => {
    using ending = await plainServer((socket) => void setImmediate(() => act(socket)))
    const wire = await Effect.runPromise(Wire.open(ending.at, millis))
    await until(() => !wire.isOpen)
    expect([wire.isQuiet, wire.isSecure]).toEqual([false, false])
    while (wire.unsolicited() !== undefined);
    wire.send("NOOP\r\n")
    wire.end("QUIT\r\n")
    for (const step of [wire.reply(millis), wire.write(Buffer.from("x"), millis), wire.secure(options, millis)]) {
      expect(await message(step)).toBe(reason)
    }
    expect(vi.getTimerCount()).toBe(0)
  })

  it("was refused, or its server has no name", async () => {
    const closed = await plainServer(() => {})
    closed[Symbol.dispose]()
    expect(await message(Wire.open(closed.at, millis))).toBe("The server refuses connections")
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe("Replies of a mail server", () => {
  const read = (...chunks: ReadonlyArray<string>) => {
    const reader = Reply.reader()
    const replies = chunks.flatMap((chunk) => reader.push(Buffer.from(chunk, "latin1")))
    return {
      replies: replies.map(({ code, status, lines }) => [code, status, lines.join("|")]),
      more: reader.isIncomplete(),
    }
  }
  it.each([
    ["250 ok\r\n", [[250, null, "ok"]], false],
    ["250 ok\n", [[250, null, "ok"]], false],
    ["250\r\n", [[250, null, ""]], false],
    ["250ok\r\n", [[250, null, "ok"]], false],
    ["250-a\r\n250-b\r\n250 c\r\n", [[250, null, "a|b|c"]], false],
    ["550 5.1.1 gone\r\n", [[550, "5.1.1", "5.1.1 gone"]], false],
    ["550 5.1.1234 gone\r\n", [[550, null, "5.1.1234 gone"]], false],
    ["250-a\r\n", [], true],
    ["250 ok\r", [], true],
    [
      "250 a\r\n354 b\r\n2",
      [
        [250, null, "a"],
        [354, null, "b"],
      ],
      true,
    ],
  ])("%j are parsed in any pieces", (text, replies, more) => {
    expect(read(text)).toEqual({ replies, more })
    expect(read(...text)).toEqual({ replies, more })
  })

  it.each(["150 x\r\n", "600 x\r\n", "2500 x\r\n", "25 x\r\n", "\r\n", "\n", "EHLO\r\n"])(
    "%j are no replies",
    (text) => {
      expect(() => read(text)).toThrow(Reply.NotSmtp)
    },
  )

  it("have at most 200 lines of 4,096 characters", () => {
    const line = (length: number) => `250 ${"x".repeat(length - 4)}\r\n`
    expect(read(line(4_096)).replies).toHaveLength(1)
    expect(() => read(line(4_097))).toThrow(Reply.NotSmtp)
    expect(read("x".repeat(0), "250 ".padEnd(4_096, "x"))).toMatchObject({ more: true })
    expect(() => read("250 ".padEnd(4_097, "x"))).toThrow(Reply.NotSmtp)
    expect(read(`${"250-x\r\n".repeat(199)}250 x\r\n`).replies).toHaveLength(1)
    expect(() => read(`${"250-x\r\n".repeat(200)}250 x\r\n`)).toThrow(Reply.NotSmtp)
  })

  it("are shown in one line of at most 500 characters, without codes and control characters", () => {
    const [reply] = Reply.reader().push(Buffer.from("550-5.1.1 no\u0007 such\r\n550 5.1.1  user\r\n", "latin1"))
    expect(Reply.textOf(reply!)).toBe("no such user")
    expect(Reply.textOf({ code: 250, status: null, lines: [" ", "no", " "] })).toBe("no")
    expect(Reply.textOf({ code: 250, status: null, lines: ["x".repeat(600)] })).toHaveLength(500)
  })
})

/** Mail in chunks (BDAT, RFC 3030): parser, server, and whole service. */
import { connect } from "node:net"
import { ChunkingConnection, ChunkStream, read } from "@svc/mail-gateway/mail/smtp/Chunking"
import { Reply } from "@svc/mail-gateway/mail/smtp/Replies"
import { Server } from "@svc/mail-gateway/mail/smtp/Server"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

/**
 * Sends everything after the greeting, and returns all replies until the server closes; of multi-line ones the last
 * line.
 */
const talk = (port: number, commands: string): Promise<ReadonlyArray<string>> =>
  new Promise((resolve, reject) => {
    let text = ""
    const socket = connect(port, "127.0.0.1")
    socket.once("data", () => socket.write(commands, "latin1"))
    socket.on("data", (bytes) => (text += bytes.toString("latin1")))
    socket.setTimeout(30_000, () => socket.destroy(new Error(`no reply after: ${text}`)))
    socket.on("error", (error) => (text === "" ? reject(error) : undefined))
    socket.on("close", () => resolve(text.split("\r\n").filter((line) => /^\d{3} /.test(line))))
  })

const envelope = (to: string) => `EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<${to}>\r\n`
const codes = (replies: ReadonlyArray<string>) => replies.map((line) => line.slice(0, 3)).join(" ")

describe("The bytes of a chunk", () => {
  const content = "QUIT\r\n.\r\nBDAT 3\r\n\0\r\r\n.."
  const commands = `NOOP\r\nBDAT ${content.length}\r\n${content}RSET\r\nBDAT 1 LAST\r\n.HELP\r\n`

  it("are those counted, however the network splits them", async () => {
    for (let length = 1; length <= commands.length; length++) {
      const received: Array<string> = []
      const parser = new ChunkStream()
      parser.oncommand = (command, callback) => {
        received.push(command.toString("latin1"))
        const chunk = read(command.toString("latin1"))
        if (chunk !== undefined) {
          const bytes: Array<Buffer> = []
          parser.chunk({
            left: chunk.size,
            take: (more, next) => {
              bytes.push(more)
              next()
            },
            end: (next) => {
              received.push(Buffer.concat(bytes).toString("latin1"))
              next()
            },
          })
        }
        callback!()
      }
      for (let at = 0; at < commands.length; at += length)
        parser.write(Buffer.from(commands.slice(at, at + length), "latin1"))
      await new Promise<void>((resolve) => parser.end(resolve))
      expect(received).toEqual(["NOOP", `BDAT ${content.length}`, content, "RSET", "BDAT 1 LAST", ".", "HELP"])
    }
  })

  it("are counted in decimal only", () => {
    expect(read("bdat 12 last")).toEqual({ size: 12, isLast: true })
    expect(read("BDAT  0 ")).toEqual({ size: 0, isLast: false })
    for (const command of [
      "BDAT",
      "BDAT -1",
      "BDAT 0x10",
      "BDAT 1e3",
      "BDAT 5LAST",
      "BDAT 5 FIRST",
      "BDAT 1 2",
      "BDAT 9999999999999999",
    ])
      expect(read(command)).toBeUndefined()
  })
})

describe("An SMTP server with BDAT", () => {
  const most = 300_000
  let server: Server
  let port: number
  const taken: Array<string> = []
  const started: Array<string> = []
  beforeAll(async () => {
    server = new Server(
      {
        authOptional: true,
        disabledCommands: ["AUTH", "STARTTLS"],
        disableReverseLookup: true,
        logger: false,
        size: most,
        rejectOversized: true,
        hideENHANCEDSTATUSCODES: false,
        onData: (stream, session, done) => {
          const bytes: Array<Buffer> = []
          const receive = () => stream.on("data", (more: Buffer) => bytes.push(more))
          // A slow receiver begins when the stream is full.
          const wait = () => void (stream.writableNeedDrain ? receive() : setImmediate(wait))
          if (session.envelope.mailFrom !== false && session.envelope.mailFrom.address.startsWith("slow")) wait()
          else receive()
          stream.once("close", () => started.push("gone"))
          stream.once("end", () => {
            const text = Buffer.concat(bytes).toString("latin1")
            taken.push(text)
            // The timeout of the idle connection ends while the message is processed.
            if (text.includes("late")) for (const connection of server.connections) connection._onTimeout()
            setImmediate(() => done(text.includes("refuse") ? new Reply(554, "5.6.0 Refused") : null))
            expect(session.envelope.rcptTo).toHaveLength(1)
          })
        },
      },
      [],
    )
    port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.server.address() as { readonly port: number }).port))
    })
  })
  afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())))

  /** Returns the replies after the envelope, and the received message. */
  const exchange = async (commands: string, before = envelope("b@example.org")) => {
    taken.length = 0
    started.length = 0
    const replies = await talk(port, `${before}${commands}QUIT\r\n`)
    return { codes: codes(replies.slice(1 + before.split("\r\n").length - 1)), taken: [...taken], replies }
  }
  /** A second message in the same session, which shows that parsing resumed at the right place. */
  const another = "MAIL FROM:<c@example.org>\r\nRCPT TO:<d@example.org>\r\nBDAT 5 LAST\r\nafter"

  it("announces CHUNKING", async () => {
    const socket = connect(port, "127.0.0.1")
    let text = ""
    socket.on("data", (bytes) => (text += bytes.toString()))
    socket.write("")
    await eventually(
      async () => text,
      (found) => found.startsWith("220"),
    )
    socket.write("EHLO x\r\nQUIT\r\n")
    await new Promise((resolve) => socket.once("close", resolve))
    expect(text).toMatch(/^250[- ]CHUNKING\r$/m)
    expect(text).not.toMatch(/BINARYMIME/)
  })

  it("accepts a message of one chunk, of several, and with an empty last one", async () => {
    expect(await exchange("BDAT 5 LAST\r\nhello" + another)).toMatchObject({
      codes: "250 250 250 250 221",
      taken: ["hello", "after"],
    })
    expect(await exchange("BDAT 3\r\nhelBDAT 1\r\nlBDAT 1 LAST\r\no")).toMatchObject({
      codes: "250 250 250 221",
      taken: ["hello"],
    })
    expect(await exchange("BDAT 5\r\nhelloBDAT 0 LAST\r\n" + another)).toMatchObject({
      codes: "250 250 250 250 250 221",
      taken: ["hello", "after"],
    })
    expect((await exchange("BDAT 5\r\nhelloBDAT 0 LAST\r\n")).replies.at(-3)).toMatch(/^250 2\.0\.0 5 /)
  })

  it("accepts a message by DATA after one in chunks", async () => {
    const data = "MAIL FROM:<c@example.org>\r\nRCPT TO:<d@example.org>\r\nDATA\r\n..dot\r\n.\r\n"
    expect(await exchange(`BDAT 5 LAST\r\nhello${data}${another}`)).toMatchObject({
      codes: "250 250 250 354 250 250 250 250 221",
      taken: ["hello", ".dot\r\n", "after"],
    })
  })

  it("treats nothing in a chunk as an end or a command, and removes no dot", async () => {
    const text = "..\r\n.\r\nRSET\r\nDATA\r\n.\r\nBDAT 1 LAST\r\n"
    expect(await exchange(`BDAT ${text.length} LAST\r\n${text}`)).toMatchObject({ codes: "250 221", taken: [text] })
  })

  it("waits for a receiver that is slower than the client, in one chunk and between chunks", async () => {
    const text = "x".repeat(200_000)
    const slow = envelope("b@example.org").replace("<a@", "<slow@")
    for (const [chunks, replies] of [
      [`BDAT ${text.length} LAST\r\n${text}`, "250"],
      [`BDAT ${text.length}\r\n${text}BDAT 5 LAST\r\nafter`, "250 250"],
    ] as const) {
      const found = await exchange(`${chunks}${another}`, slow)
      expect(found.codes).toBe(`${replies} 250 250 250 221`)
      expect(found.taken.map(({ length }) => length)).toEqual([text.length + (replies === "250" ? 0 : 5), 5])
    }
  })

  it("skips the bytes of a chunk without a transaction", async () => {
    const inside = "MAIL FROM:<evil@example.org>\r\n"
    const bytes = `BDAT ${inside.length} LAST\r\n${inside}`
    expect(await exchange(bytes, "")).toMatchObject({ codes: "503 221", taken: [] })
    expect(await exchange(bytes, "EHLO x\r\nMAIL FROM:<a@example.org>\r\n")).toMatchObject({
      codes: "503 221",
      taken: [],
    })
    // After the last chunk, and after a rejected one.
    expect(await exchange(`BDAT 5 LAST\r\nhello${bytes}${another}`)).toMatchObject({
      codes: "250 503 250 250 250 221",
      taken: ["hello", "after"],
    })
    expect(await exchange(`BDAT 6 LAST\r\nrefuse${bytes}${another}`)).toMatchObject({
      codes: "554 503 250 250 250 221",
      taken: ["refuse", "after"],
    })
  })

  it("discards a message at RSET and EHLO, and when the connection ends", async () => {
    expect(await exchange(`BDAT 5\r\nhelloRSET\r\n${another}`)).toMatchObject({
      codes: "250 250 250 250 250 221",
      taken: ["after"],
    })
    expect(await exchange(`BDAT 5\r\nhelloEHLO x\r\n${another}`)).toMatchObject({
      codes: "250 250 250 250 250 221",
      taken: ["after"],
    })
    expect(await exchange("BDAT 5\r\nhello")).toMatchObject({ codes: "250 221", taken: [] })
    await eventually(
      async () => started,
      (all) => all.includes("gone"),
    )
  })

  it("rejects DATA, MAIL and RCPT between chunks", async () => {
    const between = "DATA\r\nRCPT TO:<c@example.org>\r\nMAIL FROM:<a@example.org>\r\n"
    expect(await exchange(`BDAT 3\r\nhel${between}BDAT 2 LAST\r\nlo`)).toMatchObject({
      codes: "250 503 503 503 250 221",
      taken: ["hello"],
    })
  })

  it("rejects what is too large in one chunk or in total, and continues after it", async () => {
    const half = "x".repeat(most / 2 + 1)
    expect(
      await exchange(`BDAT ${half.length}\r\n${half}BDAT ${half.length}\r\n${half}BDAT 2 LAST\r\n\r\n${another}`),
    ).toMatchObject({ codes: "250 552 503 250 250 250 221" })
    const full = "x".repeat(most)
    expect((await exchange(`BDAT ${most} LAST\r\n${full}`)).codes).toBe("250 221")
    expect((await exchange(`BDAT ${most + 1} LAST\r\n${full}x`)).codes).toBe("552 221")
    // A chunk that is announced as far too large is not read.
    const { replies } = await exchange(`BDAT ${most * 2 + 1} LAST\r\nQUIT\r\n`)
    expect(replies.at(-1)).toMatch(/^552 5\.3\.4 /)
    expect((await exchange(`BDAT 123456789012345\r\nQUIT\r\n`, "")).codes).toBe("552")
    expect((await exchange(`BDAT 1\r\nxBDAT ${most * 2} LAST\r\nQUIT\r\n`)).codes).toBe("250 552")
  })

  it("forgets unknown commands after a message, and ends no session while it processes one", async () => {
    const unknown = "UNKNOWN\r\n".repeat(9)
    expect((await exchange(`${unknown}BDAT 4 LAST\r\nlate${unknown}`)).codes).toBe(
      `${"500 ".repeat(9)}250 ${"500 ".repeat(9)}221`,
    )
  })

  it("lets other connections proceed between pipelined commands that take long", async () => {
    let turn = 0
    let millis = performance.now()
    const turns = new Set<number>()
    const next = () => {
      turn++
      running = setImmediate(next)
    }
    let running = setImmediate(next)
    const original = ChunkingConnection.prototype._onCommand
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (millis += 5))
    const command = vi.spyOn(ChunkingConnection.prototype, "_onCommand").mockImplementation(function (
      this: ChunkingConnection,
      ...given
    ) {
      turns.add(turn)
      original.apply(this, given)
    })
    try {
      await talk(port, `EHLO x\r\n${"NOOP\r\n".repeat(50)}QUIT\r\n`)
    } finally {
      clearImmediate(running)
      clock.mockRestore()
      command.mockRestore()
    }
    expect(turns.size).toBeGreaterThan(10)
  })

  it("disconnects clients with a command of more than 16 KiB", async () => {
    expect(codes(await talk(port, "x".repeat(16 * 1024 + 1)))).toBe("220 421")
  })

  it("disconnects clients with chunks of unknown size or too many small chunks", async () => {
    expect(await exchange("BDAT 5LAST\r\nhello")).toMatchObject({ codes: "501", taken: [] })
    const { codes: answered } = await exchange("BDAT 1\r\nx".repeat(1_100))
    expect(answered.split(" ")).toHaveLength(1_001)
    expect(answered).toMatch(/^(250 ){1000}554$/)
  })
})

describe("The service with BDAT", () => {
  let service: OwnService
  let session: string
  let handle: string
  beforeAll(async () => {
    service = await startService({ env: { SVC_MESSAGE_BYTES: String(100_000) } })
    session = (await signUp(service.base)).session
    handle = (await makeIdentity(service.base, session)).handle
  })
  afterAll(() => service.stop())

  const get = (path: string) => call(service.base, "GET", path, { token: session })
  const messages = async () => (await get(`/api/identities/${handle}/messages`)).body.messages
  const letter = (subject: string) => `From: a@example.org\r\nSubject: ${subject}\r\n\r\n.a dot\r\n..two\r\n`
  const deliver = (chunks: ReadonlyArray<string>) =>
    talk(
      service.smtpPort,
      `${envelope(`${handle}@mail.localhost`)}${chunks.map((chunk, at) => `BDAT ${chunk.length}${at === chunks.length - 1 ? " LAST" : ""}\r\n${chunk}`).join("")}QUIT\r\n`,
    )

  it("stores a message like one sent by DATA", async () => {
    const complete = letter("chunks")
    expect(codes(await deliver([complete.slice(0, 20), complete.slice(20)]))).toBe("220 250 250 250 250 250 221")
    expect((await messages()).map((one: any) => one.subject)).toEqual(["chunks"])
    const [{ id }] = await messages()
    expect((await get(`/api/identities/${handle}/messages/${id}`)).body.text).toBe(".a dot\n..two\n")
    // A 250 was sent, so an identical message is a second one.
    await deliver([complete])
    expect(await messages()).toHaveLength(2)
    await send(service.smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, text: "and by DATA" })
    expect(await messages()).toHaveLength(3)
  })

  it("rejects what it rejects in DATA", async () => {
    const before = (await messages()).length
    expect((await deliver([letter("bare").replaceAll("\r\n", "\n")])).at(-1)).toMatch(/^554 5\.6\.0 Lines/)
    expect((await deliver([`${letter("cut")}\r`, "x\r\n"])).at(-1)).toMatch(/^554 5\.6\.0 Lines/)
    expect((await deliver([letter("nul").replace("dot", "\0")])).at(-2)).toMatch(/^554 5\.6\.0 .*NUL/)
    expect((await deliver([letter("large"), "x".repeat(100_001)])).at(-2)).toMatch(/^552 5\.3\.4 /)
    expect(await messages()).toHaveLength(before)
    // The Identity is notified of the oversized message.
    await eventually(
      () => get(`/api/events?type=email.refused&handle=${handle}`),
      ({ body }) => body.events.length === 1,
    )
  })
})

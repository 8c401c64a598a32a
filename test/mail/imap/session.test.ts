/** Sessions without sockets and database, fed bytes in arbitrary chunks. */
import * as SpoolFiles from "@svc/mail-gateway/mail/imap/server/SpoolFiles"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as MemoryStore from "./MemoryStore.ts"
import { append, login, open, type Options, random, fullConversation } from "./Sessions.ts"

/** Sends everything in one chunk and returns all output. */
const converse = async (text: string, options?: Options) => {
  const session = await open(options)
  const turn = await session.feed(Buffer.from(text, "latin1"))
  return { text: session.said(), turn }
}

describe("an IMAP session", () => {
  it("gives the same responses for any chunking", async () => {
    const { text } = await converse(fullConversation)
    expect(text).toContain("24 OK")
    const next = random(7)
    for (let round = 0; round < 20; round++) {
      const session = await open()
      const bytes = Buffer.from(fullConversation, "latin1")
      for (let at = 0; at < bytes.length;) {
        const size = round === 0 ? 1 : 1 + Math.floor(next() * next() * 400)
        await session.feed(bytes.subarray(at, at + size))
        at += size
      }
      expect(session.said()).toBe(text)
    }
  })

  it("buffers at most the command limits and continues after an oversized command", async () => {
    const session = await open()
    await session.feed(Buffer.from(login))
    session.forget()
    const megabyte = Buffer.alloc(1024 * 1024, "x")
    for (const start of ["b SEARCH TEXT ", "b APPEND "]) {
      await session.feed(Buffer.from(start))
      for (let n = 0; n < 10; n++) await session.feed(megabyte.subarray(0, 100_000))
      await session.feed(Buffer.from("\r\nc NOOP\r\n"))
      expect(session.said()).toMatch(/^b BAD The command is too long\.\r\nc OK/)
      session.forget()
    }
    // A non-synchronizing literal is discarded; a synchronizing one is rejected before it is sent.
    await session.feed(Buffer.from(`d APPEND INBOX {${2 * megabyte.length}+}\r\n`))
    await session.feed(megabyte)
    await session.feed(megabyte)
    await session.feed(Buffer.from("\r\ne APPEND INBOX {100001}\r\nf NOOP\r\n"))
    expect(session.said()).toMatch(/^d NO \[TOOBIG\] .*\r\ne NO \[TOOBIG\] .*\r\nf OK/)
  })

  it("gives the space of a large message back when the message is stored, and when the session ends before", async () => {
    const spools = SpoolFiles.make(200_000)
    const session = await open({ spools })
    await session.feed(Buffer.from(`${login}b APPEND INBOX {70000+}\r\n`))
    await session.feed(Buffer.alloc(10_000, "x"))
    expect(spools.room()).toBe(130_000)
    await session.feed(Buffer.concat([Buffer.alloc(60_000, "x"), Buffer.from("\r\n")]))
    expect(session.said()).toMatch(/b OK \[APPENDUID /)
    expect(spools.room()).toBe(200_000)
    await session.feed(Buffer.from("c APPEND INBOX {70000+}\r\nx"))
    expect(spools.room()).toBe(130_000)
    await session.close()
    expect(spools.room()).toBe(200_000)
  })

  it("stores a large message after one that could not be stored, and closes the storage of each", async () => {
    const closed: Array<number> = []
    let opened = 0
    const opening = () =>
      Effect.sync(() => {
        const number = ++opened
        const pieces: Array<Buffer> = []
        const failed = Effect.fail(new Unavailable({ detail: "full", retry_after_seconds: 1 }))
        return {
          write: (bytes: Buffer) => (number === 1 ? failed : Effect.sync(() => void pieces.push(Buffer.from(bytes)))),
          read: Effect.sync(() => Buffer.concat(pieces)),
          close: Effect.sync(() => void closed.push(number)),
        }
      })
    const session = await open({ spools: { room: () => Infinity, open: opening } })
    await session.feed(Buffer.from(login))
    session.forget()
    for (const start of ["b APPEND INBOX", "c APPEND INBOX", "d APPEND INBOX x", "e APPEND INBOX x"])
      await session.feed(Buffer.from(`${start} {70000+}\r\n${"x".repeat(70_000)}\r\n`))
    expect(session.said()).toMatch(/^b NO \[UNAVAILABLE\] .*\r\nc OK \[APPENDUID .*\r\nd BAD .*\r\ne BAD /)
    expect(closed).toEqual([1, 2, 3])
    await session.close()
    expect(closed).toEqual([1, 2, 3, 4])
  })

  it("accepts a large message only while there is space, and small ones without any", async () => {
    const spools = SpoolFiles.make(70_000)
    const session = await open({ spools })
    await session.feed(Buffer.from(login))
    session.forget()
    await session.feed(Buffer.from("b APPEND INBOX {70001}\r\nc APPEND INBOX {70000}\r\nx"))
    expect(session.said()).toMatch(/^b NO \[TOOBIG\] .*\r\n\+ /)
    const other = await open({ spools })
    await other.feed(Buffer.from(`${login}d APPEND INBOX {65536+}\r\n${"x".repeat(65_536)}\r\n`))
    expect(other.said()).toMatch(/d OK \[APPENDUID /)
    await session.close()
  })

  it("refuses a second login, TLS in TLS, and a line other than DONE in IDLE", async () => {
    const { text } = await converse(`${login}b LOGIN ada x\r\nc STARTTLS\r\nd IDLE\r\nSTOP\r\ne NOOP\r\n`)
    expect(text).toMatch(
      /\r\nb BAD Already logged in\.\r\nc BAD TLS is active\.\r\n\+ idling\r\nd BAD Expected DONE\.\r\ne OK /,
    )
  })

  it("reports the quota in units of 1,024 bytes, of which a started one counts", async () => {
    // The Mailbox has one byte of a million.
    const { text } = await converse(`${login}b GETQUOTA ""\r\n`)
    expect(text).toContain('* QUOTA "" (STORAGE 1 976)\r\n')
  })

  it("accepts NOOP, CAPABILITY, ID and LOGOUT in every state", async () => {
    const states = {
      "before TLS": { before: "", options: { secure: false, allowsPlain: false } },
      "before the login": { before: "", options: {} },
      "logged in": { before: login, options: {} },
      selected: { before: `${login}${append("b")}c SELECT INBOX\r\n`, options: {} },
      "read only": { before: `${login}c EXAMINE INBOX\r\n`, options: {} },
      "after a cancelled login": { before: "a AUTHENTICATE PLAIN\r\n*\r\n", options: {} },
      "after IDLE": { before: `${login}c IDLE\r\nDONE\r\n`, options: {} },
    }
    for (const [state, { before, options }] of Object.entries(states)) {
      const session = await open(options)
      await session.feed(Buffer.from(before))
      session.forget()
      const turn = await session.feed(Buffer.from("w NOOP\r\nx CAPABILITY\r\ny ID NIL\r\nz LOGOUT\r\n"))
      expect(session.said(), state).toMatch(
        /^(?:\* \d+ \w+\r\n)*w OK .*\r\n\* CAPABILITY IMAP4rev1 .*\r\nx OK .*\r\n\* ID .*\r\ny OK .*\r\n\* BYE .*\r\nz OK .*\r\n$/,
      )
      expect(turn, state).toEqual({ _tag: "Close" })
    }
  })

  it("accepts ID with 30 fields of maximum size before login, quoted, escaped or as literals", async () => {
    const fields = (value: (text: string) => string, content: string) =>
      Array.from({ length: 30 }, (_, n) => `${value(`f${n}`.padEnd(30, "x"))} ${value(content)}`).join(" ")
    const literal = (text: string) => `{${text.length}+}\r\n${text}`
    const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`
    for (const list of [
      fields(quoted, "v".repeat(1_024)),
      fields(quoted, '"'.repeat(1_024)),
      fields(literal, "v".repeat(1_024)),
    ]) {
      expect((await converse(`b ID (${list})\r\nc NOOP\r\n`)).text).toMatch(/^\* ID .*\r\nb OK .*\r\nc OK .*\r\n$/)
    }
    expect((await converse(`b ID ("a" "${"v".repeat(64 * 1024)}")\r\nc NOOP\r\n`)).text).toMatch(
      /^b BAD The command is too long\.\r\nc OK/,
    )
    expect((await converse(`b ID ("a" {1025+}\r\n${"v".repeat(1_025)})\r\nc NOOP\r\n`)).text).toMatch(
      /^b BAD The literal is too large\.\r\nc OK/,
    )
  })

  it("rejects more distinct keywords than a message can have", async () => {
    const { text } = await converse(`${login}b APPEND INBOX {1+}\r\nx\r\nc SELECT INBOX\r\n`)
    expect(text).toContain("c OK")
    const keywords = (count: number) => Array.from({ length: count }, (_, n) => `k${n}`).join(" ")
    const output = async (command: string) => {
      const session = await open()
      await session.feed(Buffer.from(`${login}b APPEND INBOX {1+}\r\nx\r\nc SELECT INBOX\r\n`))
      session.forget()
      await session.feed(Buffer.from(command))
      return session.said()
    }
    for (const how of ["FLAGS", "+FLAGS", "-FLAGS"]) {
      expect(await output(`d STORE 1 ${how} (${keywords(65)})\r\n`)).toMatch(/^d NO \[LIMIT\] /)
      expect(await output(`d STORE 1 ${how} (${keywords(64)} ${keywords(64)})\r\n`)).toMatch(/d OK /)
    }
    expect(await output(`d APPEND INBOX (${keywords(65)}) {1+}\r\nx\r\n`)).toMatch(/^d NO \[LIMIT\] /)
  })

  it("ends if an oversized command does not end", async () => {
    const megabyte = Buffer.alloc(1024 * 1024, "x")
    const [line, literal, early] = [await open(), await open(), await open()]
    await line.feed(Buffer.from(`${login}b SEARCH TEXT `))
    for (let n = 0; n < 2; n++) await line.feed(megabyte)
    expect(line.said()).toMatch(/\* BYE The command does not end\.\r\n$/)
    await literal.feed(Buffer.from(`${login}b APPEND INBOX {999999999999+}\r\n`))
    expect(literal.said()).toMatch(/\* BYE The command does not end\.\r\n$/)
    // The limits before login are lower.
    await early.feed(megabyte.subarray(0, 100_000))
    expect(early.said()).toMatch(/\* BYE The command does not end\.\r\n$/)
  })

  it("spools a large message and stores it unchanged", async () => {
    const session = await open()
    await session.feed(Buffer.from(`${login}b SELECT INBOX\r\n`))
    const next = random(3)
    const large = Buffer.from(`Subject: large\r\n\r\n${"0123456789abcdef".repeat(5_000)}\r\n`)
    const bytes = Buffer.concat([Buffer.from(`c APPEND INBOX {${large.length}+}\r\n`), large, Buffer.from("\r\n")])
    for (let at = 0; at < bytes.length;) {
      const size = 1 + Math.floor(next() * 9_000)
      await session.feed(bytes.subarray(at, at + size))
      at += size
    }
    session.forget()
    await session.feed(Buffer.from("d FETCH 1 (RFC822.SIZE BODY.PEEK[])\r\n"))
    expect(session.said()).toContain(`RFC822.SIZE ${large.length} BODY[] {${large.length}}\r\n${large.toString()})`)
  })

  it("rejects passwords without TLS, also between STARTTLS and the handshake", async () => {
    const options = { secure: false, allowsPlain: false }
    const { text, turn } = await converse(
      `a CAPABILITY\r\n${login}b AUTHENTICATE PLAIN AGFkYQB4\r\nc STARTTLS\r\n${login}`,
      options,
    )
    expect(text).toContain("LOGINDISABLED")
    expect(text).not.toContain("AUTH=")
    expect(text).toMatch(/a NO \[PRIVACYREQUIRED\]/)
    expect(text).toMatch(/b NO \[PRIVACYREQUIRED\]/)
    expect(turn._tag).toBe("StartTls")
    expect(text.endsWith("c OK Begin TLS negotiation now.\r\n")).toBe(true)
  })

  it("supports PLAIN, LOGIN and OAUTHBEARER with and without an initial response", async () => {
    const plain = Buffer.from("\0ada\0x").toString("base64")
    const bearer = Buffer.from("n,a=ada,\x01host=h\x01auth=Bearer token\x01\x01").toString("base64")
    const [user, password] = ["ada", "x"].map((one) => Buffer.from(one).toString("base64"))
    for (const output of [
      `a AUTHENTICATE PLAIN ${plain}\r\n`,
      `a AUTHENTICATE PLAIN\r\n${plain}\r\n`,
      `a AUTHENTICATE LOGIN\r\n${user}\r\n${password}\r\n`,
      `a AUTHENTICATE OAUTHBEARER ${bearer}\r\n`,
    ]) {
      expect((await converse(output)).text, output).toMatch(/a OK \[CAPABILITY/)
    }
    expect((await converse("a AUTHENTICATE PLAIN\r\n*\r\nb CHECK\r\n")).text).toMatch(/a BAD Cancelled[^]*b BAD Log in/)
    expect((await converse("a LOGIN eve x\r\n")).text).toMatch(/a NO \[AUTHENTICATIONFAILED\]/)
  })

  it("sends removals only when no command uses numbers, and no number means two messages", async () => {
    const store = MemoryStore.make()
    const [one, other] = [await open({ store }), await open({ store })]
    for (const session of [one, other]) await session.feed(Buffer.from(login))
    await one.feed(Buffer.from(append("b") + append("c") + append("d") + "e SELECT INBOX\r\n"))
    await other.feed(Buffer.from("e SELECT INBOX\r\nf STORE 2 +FLAGS (\\Deleted)\r\ng EXPUNGE\r\n"))
    one.forget()
    await one.feed(Buffer.from("h FETCH 3 UID\r\ni SEARCH ALL\r\nj FETCH 2 UID\r\nk NOOP\r\nl FETCH 2 UID\r\n"))
    const output = one.said()
    expect(output).toContain("* 3 FETCH (UID 3)\r\nh OK")
    expect(output).toContain("* SEARCH 1 3\r\n")
    // A number keeps its message until the removal is sent.
    expect(output).toContain("* 2 FETCH (UID 2)\r\nj OK")
    expect(output).toMatch(/\* 2 EXPUNGE\r\nk OK/)
    expect(output).toContain("* 2 FETCH (UID 3)\r\nl OK")
  })

  it.each([
    ["FETCH 1 UID", "* 1 FETCH (UID 1)"],
    ["STORE 1 +FLAGS.SILENT (\\Flagged)", ""],
    ["SEARCH 1:*", "* SEARCH 1 3\r\n"],
    ["UID SEARCH ALL", "* SEARCH 1 3\r\n"],
    ["UID SEARCH RETURN (COUNT MAX) ALL", "MAX 3 COUNT 2"],
    ["SORT (SUBJECT) UTF-8 ALL", "* SORT 1 3\r\n"],
    ["THREAD ORDEREDSUBJECT UTF-8 ALL", "* THREAD (1)(3)"],
    ["COPY 1 Sent", ""],
  ])("keeps its numbers during %s, and knows no message that it has not announced", async (command, expected) => {
    const store = MemoryStore.make()
    const [one, other] = [await open({ store }), await open({ store })]
    for (const session of [one, other]) await session.feed(Buffer.from(login))
    await one.feed(Buffer.from(append("b") + append("c") + append("d") + "e SELECT INBOX\r\n"))
    await other.feed(Buffer.from("e SELECT INBOX\r\nf STORE 2 +FLAGS (\\Deleted)\r\ng EXPUNGE\r\n" + append("h")))
    one.forget()
    await one.feed(Buffer.from(`i ${command}\r\n`))
    const output = one.said()
    expect(output).toContain(expected)
    expect(output).toMatch(/\r\ni OK|^i OK/)
    // The session learns that a message is gone, and reports it only after commands with UIDs.
    await one.feed(Buffer.from("h FETCH 2 RFC822.SIZE\r\n"))
    one.forget()
    await one.feed(Buffer.from(`i ${command}\r\n`))
    expect(one.said().includes("* 2 EXPUNGE")).toBe(command.startsWith("UID"))
    one.forget()
    await one.feed(Buffer.from("j NOOP\r\nk SEARCH ALL\r\n"))
    expect(one.said()).toContain("* SEARCH 1 2 3\r\n")
  })

  it("announces IDLE before login", async () => {
    const { text } = await converse("a CAPABILITY\r\n")
    expect(text).toMatch(/^\* CAPABILITY .* IDLE /)
  })

  it("offers compression after login until it is active, and returns where the compressed bytes begin", async () => {
    const session = await open()
    await session.feed(Buffer.from("a COMPRESS DEFLATE\r\n"))
    expect(session.said()).toContain("a BAD Log in first.")
    await session.feed(Buffer.from(`${login}b CAPABILITY\r\nc COMPRESS LZ4\r\n`))
    expect(session.said()).toMatch(
      /\* CAPABILITY .* COMPRESS=DEFLATE.*\r\nb OK [^]*c BAD Unknown compression algorithm\./,
    )
    const command = "d COMPRESS DEFLATE\r\n"
    const turn = await session.feed(Buffer.from(`e NOOP\r\n${command}compressed`))
    expect(turn).toEqual({ _tag: "Compress", at: `e NOOP\r\n${command}`.length })
    expect(session.said()).toMatch(/d OK DEFLATE active\.\r\n$/)
    session.forget()
    await session.feed(Buffer.from(`${command}e CAPABILITY\r\n`))
    expect(session.said()).toMatch(/^d NO \[COMPRESSIONACTIVE\] .*\r\n\* CAPABILITY /)
    expect(session.said()).not.toContain("COMPRESS=DEFLATE")
  })

  it("marks ancestors without a mailbox as the client's LIST version expects", async () => {
    const { text } = await converse(
      `${login}b CREATE x/y\r\nc LIST "" x\r\nd LIST "" x RETURN (CHILDREN)\r\ne ENABLE IMAP4rev2\r\nf LIST "" x\r\n`,
    )
    expect(text).toContain('* LIST (\\NonExistent \\Noselect \\HasChildren) "/" x\r\nc OK')
    expect(text).toContain('* LIST (\\NonExistent \\HasChildren) "/" x\r\nd OK')
    expect(text).toContain('* LIST (\\NonExistent \\HasChildren) "/" x\r\nf OK')
  })

  it("returns the rest of a body for a partial fetch without a count", async () => {
    const { text } = await converse(
      `${login}${append("b")}c SELECT INBOX\r\nd FETCH 1 (BODY.PEEK[1]<2> BINARY.PEEK[2]<1> BODY.PEEK[1]<9>)\r\n`,
    )
    expect(text).toContain("BODY[1]<2> {2}\r\nxt BINARY[2]<1> ~{3}\r\n\x01\x02\x03 BODY[1]<9> {0}\r\n)")
  })

  it("returns COPYUID for a complete copy, and none if the UIDs of a repeated copy are unknown", async () => {
    const commands = `${login}${append("b")}${append("c")}d SELECT INBOX\r\ne COPY 1:2 Sent\r\nf MOVE 2 Sent\r\n`
    const complete = (await converse(commands)).text
    expect(complete).toMatch(/e OK \[COPYUID \d+ 1:2 1:2\]/)
    expect(complete).toMatch(/\* OK \[COPYUID \d+ 2 3\] Moved\r\n\* 2 EXPUNGE\r\nf OK/)
    const store = { ...MemoryStore.make(), copy: () => Effect.succeed({ uidValidity: 1, from: [1, 2], to: [] }) }
    const repeated = (await converse(commands, { store })).text
    expect(repeated).toContain("e OK COPY completed")
    expect(repeated).not.toContain("COPYUID")
  })

  it("keeps the source route of an address in ENVELOPE", async () => {
    const routed = "From: <@one,@two:user@domain>\r\nTo: <@>, X <plain@domain>, <@three:a@b>\r\n\r\nbody\r\n"
    const { text } = await converse(
      `${login}b APPEND INBOX {${routed.length}+}\r\n${routed}\r\nc SELECT INBOX\r\nd FETCH 1 ENVELOPE\r\n`,
    )
    expect(text).toContain('((NIL "@one,@two" "user" "domain"))')
    expect(text).toContain('("X" NIL "plain" "domain")(NIL "@three" "a" "b")')
  })
})

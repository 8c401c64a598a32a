/** Sessions without a socket and without a store: whatever bytes come in whatever portions. */
import * as Session from "@svc/mail-gateway/mail/imap/session/Session"
import type { Store } from "@svc/mail-gateway/mail/imap/session/Store"
import { Effect, Scope } from "effect"
import { describe, expect, it } from "vitest"
import * as MemoryStore from "./MemoryStore.ts"

interface Options {
  readonly secure?: boolean
  readonly allowsPlain?: boolean
  readonly store?: Store
}

const open = async ({ secure = true, allowsPlain = true, store = MemoryStore.make() }: Options = {}) => {
  const scope = Scope.makeUnsafe()
  const heard: Array<Buffer> = []
  const session = await Effect.runPromise(
    Scope.provide(
      Session.make(
        {
          messageBytes: 100_000,
          allowsPlain,
          send: (bytes) => Effect.sync(() => void heard.push(Buffer.from(bytes))),
          login: (user) =>
            Effect.succeed(
              user === "ada" ? store : { denied: "AUTHENTICATIONFAILED" as const, text: "no", ends: false },
            ),
        },
        secure,
      ),
      scope,
    ),
  )
  return {
    feed: (bytes: Buffer) => Effect.runPromise(session.feed(bytes)),
    said: () => Buffer.concat(heard).toString("latin1"),
    forget: () => void heard.splice(0),
    secured: session.secured,
  }
}

/** Says it all at once; answers everything that was heard. */
const converse = async (text: string, options?: Options) => {
  const session = await open(options)
  const turn = await session.feed(Buffer.from(text, "latin1"))
  return { text: session.said(), turn }
}

const login = "a LOGIN ada x\r\n"
const message = [
  "From: A <a@x.example>",
  "Subject: hello",
  "Content-Type: multipart/mixed; boundary=b",
  "",
  "--b",
  "Content-Type: text/plain",
  "",
  "text",
  "--b",
  "Content-Type: application/octet-stream",
  "Content-Transfer-Encoding: base64",
  "",
  "AAECAw==",
  "--b--",
  "",
].join("\r\n")
const append = (tag: string, folder = "INBOX") =>
  `${tag} APPEND ${folder} (\\Seen) {${message.length}+}\r\n${message}\r\n`

const whole = [
  "1 CAPABILITY\r\n",
  '2 LOGIN {3+}\r\nada "x y"\r\n',
  append("3"),
  append("4"),
  append("5"),
  "6 SELECT INBOX (CONDSTORE)\r\n",
  "7 FETCH 1:* (FLAGS UID ENVELOPE BODYSTRUCTURE BODY.PEEK[1] BODY[HEADER.FIELDS (SUBJECT)] BINARY.SIZE[2])\r\n",
  "8 UID FETCH 1:2 (BODY.PEEK[2]<2.4> RFC822.SIZE BINARY[2])\r\n",
  "9 STORE 1,3 +FLAGS (\\Deleted $Forwarded)\r\n",
  '10 SEARCH RETURN (MIN MAX ALL) OR KEYWORD $forwarded NOT (SUBJECT "hel\\"lo" 1:2)\r\n',
  "11 UID SEARCH RETURN (SAVE) DELETED\r\n12 UID COPY $ Sent\r\n",
  "13 CREATE a/b (USE (\\Archive))\r\n14 UID MOVE 2 a/b\r\n",
  "15 EXPUNGE\r\n16 STATUS Sent (MESSAGES UIDNEXT SIZE)\r\n",
  '17 LIST (SUBSCRIBED) "" ("*" "%") RETURN (CHILDREN STATUS (MESSAGES))\r\n',
  "18 IDLE\r\nDONE\r\n19 ENABLE QRESYNC IMAP4rev2\r\n20 SELECT Sent (QRESYNC (2 1 1:9))\r\n",
  "21 SORT (SUBJECT REVERSE DATE) UTF-8 ALL\r\n22 THREAD REFERENCES UTF-8 ALL\r\n23 CLOSE\r\n24 LOGOUT\r\n",
].join("")

/** A generator of numbers that is the same in every run. */
const random = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296
  return seed / 4_294_967_296
}

describe("a session", () => {
  it("answers the same however its bytes are cut", { timeout: 60_000 }, async () => {
    const { text } = await converse(whole)
    expect(text).toContain("24 OK")
    const next = random(7)
    for (let round = 0; round < 20; round++) {
      const session = await open()
      const bytes = Buffer.from(whole, "latin1")
      for (let at = 0; at < bytes.length;) {
        const size = round === 0 ? 1 : 1 + Math.floor(next() * next() * 400)
        await session.feed(bytes.subarray(at, at + size))
        at += size
      }
      expect(session.said()).toBe(text)
    }
  })

  it("throws at nothing: mutated conversations", { timeout: 120_000 }, async () => {
    const next = random(11)
    const source = Buffer.from(whole, "latin1")
    const bits = [
      "(",
      ")",
      '"',
      "{3}\r\n",
      "{99999999999}\r\n",
      "{5+}\r\n",
      "*",
      "\\",
      "\0",
      "\r\n",
      " ",
      "1:*",
      "[",
      "NIL",
      "\xff",
    ]
    let defects = 0
    for (let round = 0; round < 100; round++) {
      let bytes = source
      for (let mutation = 0; mutation < 1 + next() * 6; mutation++) {
        const at = Math.floor(next() * bytes.length)
        const cut = next() < 0.5 ? Math.floor(next() * 20) : 0
        const put = Buffer.from(bits[Math.floor(next() * bits.length)]!, "latin1")
        bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)])
      }
      const session = await open()
      for (let at = 0; at < bytes.length; at += 1_000) {
        const turn = await session.feed(bytes.subarray(at, at + 1_000))
        if (turn._tag !== "More") break
      }
      if (session.said().includes("SERVERBUG")) defects++
    }
    expect(defects).toBe(0)
  })

  it("holds no more of a command than its bounds, and goes on behind it", async () => {
    const session = await open()
    await session.feed(Buffer.from(login))
    session.forget()
    const megabyte = Buffer.alloc(1024 * 1024, "x")
    await session.feed(Buffer.from("b SEARCH TEXT "))
    for (let n = 0; n < 20; n++) await session.feed(megabyte)
    await session.feed(Buffer.from("\r\nc NOOP\r\n"))
    expect(session.said()).toMatch(/^b BAD The command is too long\.\r\nc OK/)
    session.forget()
    // A literal that nobody was asked about is passed over; one that is asked about is refused before it is sent.
    await session.feed(Buffer.from(`d APPEND INBOX {${2 * megabyte.length}+}\r\n`))
    await session.feed(megabyte)
    await session.feed(megabyte)
    await session.feed(Buffer.from("\r\ne APPEND INBOX {100001}\r\nf NOOP\r\n"))
    expect(session.said()).toMatch(/^d NO \[TOOBIG\] .*\r\ne NO \[TOOBIG\] .*\r\nf OK/)
  })

  it("takes no password in the clear where it may not, and none after STARTTLS was said but not begun", async () => {
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

  it("logs in by PLAIN, LOGIN and OAUTHBEARER, with and without an initial response", async () => {
    const plain = Buffer.from("\0ada\0x").toString("base64")
    const bearer = Buffer.from("n,a=ada,\x01host=h\x01auth=Bearer token\x01\x01").toString("base64")
    const [user, password] = ["ada", "x"].map((one) => Buffer.from(one).toString("base64"))
    for (const said of [
      `a AUTHENTICATE PLAIN ${plain}\r\n`,
      `a AUTHENTICATE PLAIN\r\n${plain}\r\n`,
      `a AUTHENTICATE LOGIN\r\n${user}\r\n${password}\r\n`,
      `a AUTHENTICATE OAUTHBEARER ${bearer}\r\n`,
    ]) {
      expect((await converse(said)).text, said).toMatch(/a OK \[CAPABILITY/)
    }
    expect((await converse("a AUTHENTICATE PLAIN\r\n*\r\nb NOOP\r\n")).text).toMatch(/a BAD Cancelled[^]*b BAD Log in/)
    expect((await converse("a LOGIN eve x\r\n")).text).toMatch(/a NO \[AUTHENTICATIONFAILED\]/)
  })

  it("tells removals only where numbers cannot be meant, and never one number for two messages", async () => {
    const store = MemoryStore.make()
    const [one, other] = [await open({ store }), await open({ store })]
    for (const session of [one, other]) await session.feed(Buffer.from(login))
    await one.feed(Buffer.from(append("b") + append("c") + append("d") + "e SELECT INBOX\r\n"))
    await other.feed(Buffer.from("e SELECT INBOX\r\nf STORE 2 +FLAGS (\\Deleted)\r\ng EXPUNGE\r\n"))
    one.forget()
    await one.feed(Buffer.from("h FETCH 3 UID\r\ni SEARCH ALL\r\nj FETCH 2 UID\r\nk NOOP\r\nl FETCH 2 UID\r\n"))
    const said = one.said()
    expect(said).toContain("* 3 FETCH (UID 3)\r\nh OK")
    expect(said).toContain("* SEARCH 1 3\r\n")
    expect(said).toContain("j OK [EXPUNGEISSUED]")
    expect(said).toMatch(/\* 2 EXPUNGE\r\nk OK/)
    expect(said).toContain("* 2 FETCH (UID 3)\r\nl OK")
  })
})

/** Parts of a message by FETCH, those that do not exist or cannot be decoded, and messages that are removed meanwhile. */
import type { Store } from "@svc/mail-gateway/mail/imap/session/Store"
import * as TransferDecoder from "@svc/mail-gateway/mail/imap/session/TransferDecoder"
import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import * as MemoryStore from "./MemoryStore.ts"
import { append, login, open } from "./Sessions.ts"

const inner = "Subject: in\r\nFrom: i@x.example\r\n\r\ninner body"
const nested = "--c\r\nContent-Type: text/html\r\n\r\nhtml\r\n--c--"
const letter = [
  "Subject: out",
  "Content-Type: multipart/mixed; boundary=b",
  "",
  "--b",
  "Content-Transfer-Encoding: quoted-printable",
  "",
  "a=3Db=",
  "c=C3=A9",
  "--b",
  "Content-Type: message/rfc822",
  "",
  inner,
  "--b",
  "Content-Transfer-Encoding: x-uuencode",
  "",
  "begin",
  "--b",
  "Content-Type: message/rfc822",
  "",
  `Content-Type: multipart/mixed; boundary=c\r\n\r\n${nested}`,
  "--b--",
  "",
].join("\r\n")

const answer = async (command: string, store?: Store) => {
  const session = await open(store === undefined ? {} : { store })
  await session.feed(
    Buffer.from(`${login}b APPEND INBOX {${letter.length}+}\r\n${letter}\r\n${append("c")}d SELECT INBOX\r\n`),
  )
  session.forget()
  const turn = await session.feed(Buffer.from(`z ${command}\r\n`))
  return { said: session.said(), turn }
}

const literal = (text: string) => `{${Buffer.byteLength(text)}}\r\n${Buffer.from(text).toString("latin1")}`

describe("FETCH of a part", () => {
  it.each([
    ["BODY.PEEK[1]", literal("a=3Db=\r\nc=C3=A9")],
    ["BODY.PEEK[1.MIME]", literal("Content-Transfer-Encoding: quoted-printable\r\n\r\n")],
    ["BODY.PEEK[2]", literal(inner)],
    ["BODY.PEEK[2.MIME]", literal("Content-Type: message/rfc822\r\n\r\n")],
    ["BODY.PEEK[2.HEADER]", literal("Subject: in\r\nFrom: i@x.example\r\n\r\n")],
    ["BODY.PEEK[2.HEADER.FIELDS (SUBJECT)]", literal("Subject: in\r\n\r\n")],
    ["BODY.PEEK[2.HEADER.FIELDS.NOT (SUBJECT)]", literal("From: i@x.example\r\n\r\n")],
    ["BODY.PEEK[2.TEXT]", literal("inner body")],
    ["BODY.PEEK[2.TEXT]<6.9>", literal("body")],
    ["BODY.PEEK[2.1]", literal("inner body")],
    ["BODY.PEEK[4.TEXT]", literal(nested)],
    ["BODY.PEEK[4.1]", literal("html")],
    ["BODY.PEEK[4.1.MIME]", literal("Content-Type: text/html\r\n\r\n")],
    // Only messages have a header and a text.
    ["BODY.PEEK[1.HEADER]", "NIL"],
    ["BODY.PEEK[1.TEXT]", "NIL"],
    ["BODY.PEEK[4.1.HEADER.FIELDS (SUBJECT)]", "NIL"],
    ["BODY.PEEK[1.1]", "NIL"],
    ["BODY.PEEK[2.2]", "NIL"],
    ["BODY.PEEK[4.2]", "NIL"],
    ["BODY.PEEK[5]", "NIL"],
    ["BINARY.PEEK[1]", literal("a=bcé")],
    ["BINARY.PEEK[1]<1.3>", literal("=bc")],
    ["BINARY.SIZE[1]", "6"],
    ["BINARY.PEEK[2]", literal(inner)],
    ["BINARY.PEEK[]", literal(letter)],
    ["BINARY.PEEK[5]", "NIL"],
    ["BINARY.SIZE[5]", "0"],
  ])("%s is exactly its bytes", async (item, value) => {
    const label = item.replace(".PEEK", "").replace(/(<\d+)\.\d+>/, "$1>")
    const { said } = await answer(`FETCH 1 ${item}`)
    expect(said).toBe(`* 1 FETCH (${label} ${value})\r\nz OK FETCH completed.\r\n`)
  })

  it("BODY[] of a message that is not UTF-8 is exactly its bytes", async () => {
    const bytes = Buffer.from("Subject: \u00e9\r\n\r\n\u00ff\u00fe\u0080", "latin1")
    const session = await open()
    await session.feed(Buffer.concat([Buffer.from(`${login}b APPEND INBOX {${bytes.length}+}\r\n`), bytes]))
    await session.feed(Buffer.from("\r\nc SELECT INBOX\r\nd FETCH 1 BODY.PEEK[]\r\n"))
    expect(session.said()).toContain(`(BODY[] {${bytes.length}}\r\n${bytes.toString("latin1")})\r\n`)
  })

  it("BINARY[] of a message in Base64 is the message as it is stored", async () => {
    const encoded = "Subject: x\r\nContent-Transfer-Encoding: base64\r\n\r\nYWJj"
    const session = await open()
    await session.feed(Buffer.from(`${login}b APPEND INBOX {${encoded.length}+}\r\n${encoded}\r\nc SELECT INBOX\r\n`))
    session.forget()
    await session.feed(Buffer.from("d FETCH 1 (BINARY.PEEK[] BINARY.PEEK[1])\r\n"))
    expect(session.said()).toContain(`* 1 FETCH (BINARY[] ${literal(encoded)} BINARY[1] ${literal("abc")})\r\n`)
  })

  it.each([
    ["BINARY.PEEK[3]", "NIL"],
    ["BINARY.SIZE[3]", "0"],
  ])("%s of an unknown encoding is refused, and the other parts are sent", async (item, value) => {
    const { said } = await answer(`FETCH 1 (${item} BINARY.SIZE[1])`)
    const label = item.replace(".PEEK", "")
    expect(said).toBe(
      `* 1 FETCH (${label} ${value} BINARY.SIZE[1] 6)\r\nz NO [UNKNOWN-CTE] Unknown transfer encoding.\r\n`,
    )
  })

  it.each([
    ["BODY.PEEK[1]", false],
    ["BODY[1]", true],
    ["BINARY.PEEK[1]", false],
    ["BINARY[1]", true],
    ["BINARY.SIZE[1]", false],
  ])("%s marks the message as read or not", async (item, isSeen) => {
    const { said } = await answer(`FETCH 1 ${item}\r\ny FETCH 1 FLAGS`)
    expect(/FLAGS \([^)]*\\Seen/.test(said)).toBe(isSeen)
    const examined = await answer(`EXAMINE INBOX\r\nx FETCH 1 ${item}\r\ny FETCH 1 FLAGS`)
    expect(examined.said).not.toMatch(/\* 1 FETCH \(FLAGS \([^)]*\\Seen/)
  })
})

describe("FETCH of a message that was removed meanwhile", () => {
  /** A store whose message loses its bytes after `reads` reads. */
  const vanishing = (size: number, reads = 0): Store => {
    const store = MemoryStore.make()
    let left = reads
    const larger = <A extends { readonly size: number }>(message: A): A => {
      const copy = { ...message, size: Math.max(message.size, size) }
      Reflect.deleteProperty(copy, "raw")
      return copy
    }
    return {
      ...store,
      stored: (...given) => Stream.map(store.stored(...given), larger),
      detailed: (...given) => Stream.map(store.detailed(...given), larger),
      bytes: (_, from, to) =>
        left-- > 0 ? Stream.succeed(new Uint8Array(Buffer.alloc(to - from, "x"))) : Stream.empty,
    }
  }

  it("has no content if it is small, and ends the session if its size was announced", async () => {
    expect((await answer("FETCH 1 BODY.PEEK[]", vanishing(0))).said).toContain("* 1 FETCH (BODY[] NIL)\r\nz OK")
    expect((await answer("FETCH 1 BODY.PEEK[]", vanishing(512 * 1024))).said).toContain("(BODY[] NIL)")
    const large = await answer("FETCH 1 BODY.PEEK[]", vanishing(512 * 1024 + 1))
    expect(large).toEqual({ said: "* 1 FETCH (BODY[] {524289}\r\n", turn: { _tag: "Close" } })
    // The size of decoded content is found by a first reading.
    const decoded = await answer("FETCH 1 BINARY.PEEK[2]", vanishing(0, 1))
    expect(decoded).toEqual({ said: "", turn: { _tag: "Close" } })
  })

  it("is reported as missing, and by the next synchronization", async () => {
    const store = MemoryStore.make()
    const gone: Store = { ...store, stored: () => Stream.empty, marked: () => Stream.empty }
    for (const command of ["FETCH 1 RFC822.SIZE", "FETCH 1:2 FLAGS"]) {
      expect((await answer(command, gone)).said).toMatch(/^z OK \[EXPUNGEISSUED\] Some messages no longer exist\.\r\n$/)
    }
    expect((await answer("STORE 1 +FLAGS (\\Seen)", gone)).said).toMatch(/z NO \[EXPUNGEISSUED\]/)
    const uncopied: Store = {
      ...store,
      copy: () => Effect.succeed({ uidValidity: 1, from: [1], to: [1] }),
    }
    expect((await answer("COPY 1:2 Sent", uncopied)).said).toMatch(/z NO \[EXPUNGEISSUED\]/)
  })
})

describe("A transfer encoding", () => {
  const base64 = Buffer.from(Array.from({ length: 1_000 }, (_, n) => (n * 7) % 256))
    .toString("base64")
    .replace(/.{76}/g, "$&\r\n")
  it.each([
    ["base64", base64],
    ["quoted-printable", "a=3Db=\r\nc  \r\n=C3=A9 =\r\n=\r\nend="],
    ["8bit", "a=3D\r\n"],
  ])("%s is decoded the same however it is cut", (encoding, text) => {
    const decoded = (length: number) => {
      const decoder = TransferDecoder.make(encoding)
      const out: Array<Buffer> = []
      for (let at = 0; at < text.length; at += length)
        out.push(decoder.push(Buffer.from(text.slice(at, at + length), "latin1")))
      return Buffer.concat([...out, decoder.end()]).toString("hex")
    }
    const whole = decoded(text.length)
    expect(Buffer.from(whole, "hex").length).toBeGreaterThan(5)
    for (let length = 1; length < Math.min(200, text.length); length++) expect(decoded(length), `${length}`).toBe(whole)
  })

  it("quoted-printable with a line of any length is decoded piece by piece", () => {
    const decoder = TransferDecoder.make("quoted-printable")
    const line = Buffer.from("=41bcdefghi".repeat(10_000))
    const first = decoder.push(line)
    expect(first.length).toBeGreaterThan(50_000)
    const all = Buffer.concat([first, decoder.push(line), decoder.end()])
    expect(all.equals(Buffer.from("Abcdefghi".repeat(20_000)))).toBe(true)
  })
})

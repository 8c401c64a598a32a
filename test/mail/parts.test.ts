/** The parts of a message: where each begins and ends, which are shown, which are files, and their fields. */
import * as Attachments from "@svc/mail-gateway/mail/Attachments"
import * as Decode from "@svc/mail-gateway/mail/mime/Decode"
import * as Header from "@svc/mail-gateway/mail/mime/Header"
import * as Parameters from "@svc/mail-gateway/mail/mime/Parameters"
import { index, limits, type Part } from "@svc/mail-gateway/mail/mime/Part"
import * as Structure from "@svc/mail-gateway/mail/mime/Structure"
import * as Transfer from "@svc/mail-gateway/mail/mime/Transfer"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"

const bytes = (text: string) => Buffer.from(text.replaceAll("\n", "\r\n"))
const mail = (text: string) => parse(bytes(text))
/** A message of these parts, each with its own header. */
const multipart = (boundary: string, ...parts: ReadonlyArray<string>) =>
  `Content-Type: multipart/mixed; boundary="${boundary}"\n\n${parts.map((part) => `--${boundary}\n${part}\n`).join("")}--${boundary}--\n`

describe("A part", () => {
  it("has a subject whose characters are split between words of a character set in capital letters", () => {
    expect(mail("Subject: =?utf-8?Q?=C3?= =?UTF-8?Q?=BC?= =?UTF-8?B?w7w=?=\n\nx").subject).toBe("üü")
  })

  it("has several languages and the last of repeated fields in its BODYSTRUCTURE", () => {
    const fields = "Content-Language: de, fr,en\nContent-ID: <1>\nContent-ID: <2>"
    const written = Structure.write(Structure.make(bytes(`${fields}\n\nx`)).root, true)
    expect(written).toBe('("text" "plain" ("charset" "us-ascii") "<2>" NIL "7bit" 1 0 NIL NIL ("de" "fr" "en") NIL)')
  })

  it("ends at its delimiter, wherever the steps of the search divide the line", () => {
    const start = 'Content-Type: multipart/mixed; boundary="b"\n\n'
    for (let shift = 0; shift < 6; shift++) {
      // The search reads 1 MiB at a time, from the end of the header.
      const content = `z\n${"x".repeat(1024 * 1024 - "--b\r\n\r\nz\r\n".length - 4 + shift)}`
      const root = index(bytes(`${start}--b\n\n${content}\n--b\n\ny\n--b--\n`))
      expect([shift, ...root.parts.map(({ bodyStart, end }) => end - bodyStart)]).toEqual([
        shift,
        content.length + 1,
        1,
      ])
    }
  })

  it("in Base64 is decoded in pieces, after padding, and in the URL-safe alphabet", () => {
    for (const [written, content] of [
      ["YQ==YmM=ZA==", "abcd"],
      ["YWI=YWJj", "ababc"],
      ["-_-_", "\u00fb\u00ff\u00bf"],
      ["+/+/", "\u00fb\u00ff\u00bf"],
    ] as const) {
      for (let cut = 0; cut <= written.length; cut++) {
        const state = { bits: 0, held: 0 }
        const decoded = [written.slice(0, cut), written.slice(cut)].map((piece) => {
          const into = Buffer.alloc(piece.length)
          return into.subarray(0, Transfer.base64(Buffer.from(piece), into, state))
        })
        expect(Buffer.concat(decoded).toString("latin1")).toBe(content)
      }
    }
  })

  it("has at most 500 addresses in a field of its ENVELOPE", () => {
    const { envelope } = Structure.make(bytes(`To: ${Array.from({ length: 501 }, () => "a@b.example").join(",")}\n\nx`))
    expect(envelope.match(/b\.example/g)).toHaveLength(500)
  })

  it("that is marked as an attachment, in small or capital letters, is not shown, even without a file name", () => {
    const { text, attachments } = mail(multipart("b", "\na", "Content-Disposition: ATTACHMENT\n\nb"))
    expect([text, attachments]).toEqual(["a", [{ index: 0, filename: null, content_type: "text/plain", size: 1 }]])
  })

  it("ends before the line break of its delimiter, with a carriage return or without", () => {
    const letter = multipart("b", "\nab", "\ncd")
    expect(parse(Buffer.from(letter)).text).toBe("ab\ncd")
    expect(mail(letter).text).toBe("ab\ncd")
  })

  it("ends its inner parts, whose delimiters are text from then on", () => {
    const inner = "Content-Type: multipart/mixed; boundary=i\n\n--i\n\none"
    expect(mail(multipart("o", inner, "\n--i\ntwo")).text).toBe("one\n--i\ntwo")
  })

  it("may be empty, and its body never begins before its header", () => {
    const root = index(bytes(multipart("b", "", "\n", "\nx")))
    const all = (part: Part): ReadonlyArray<Part> => [part, ...part.parts.flatMap(all)]
    expect(root.parts).toHaveLength(3)
    for (const { start, bodyStart, end } of all(root)) expect(start <= bodyStart && bodyStart <= end).toBe(true)
  })

  it("is a message only in an encoding that changes nothing", () => {
    const count = (encoding: string) =>
      index(bytes(`Content-Type: message/rfc822\nContent-Transfer-Encoding: ${encoding}\n\nSubject: x\n\ny`)).parts
        .length
    expect(["7bit", "8BIT", "binary", "base64"].map(count)).toEqual([1, 1, 1, 0])
  })

  it("has a boundary of at most 200 characters, which may look like a field or end in a space", () => {
    const count = (boundary: string, written = boundary) =>
      index(bytes(multipart(boundary, "\na", "Content-Type: text/html").replaceAll(`--${boundary}`, `--${written}`)))
        .parts.length
    expect([count("a".repeat(limits.boundary)), count("a".repeat(limits.boundary + 1))]).toEqual([2, 0])
    expect([count("b:1"), count("b ", "b")]).toEqual([2, 2])
  })
})

describe("A body", () => {
  it("has no byte order mark, and ends where all bodies together reach their limit", () => {
    expect(parse(Buffer.from("Content-Type: text/plain; charset=utf-8\r\n\r\n\ufeffa")).text).toBe("a")
    const large = (type: string) => `Content-Type: ${type}\n\n${"a".repeat(1_500_000)}`
    const { text, html } = mail(
      multipart("b", large("text/plain"), large("text/plain"), large("text/html"), large("text/html")),
    )
    // The limit is 2 MiB of each kind; `text` contains the words of the HTML as well.
    expect(html!.length).toBe(2 * 1024 * 1024 + 1)
    expect(text!.length).toBe(2 * (2 * 1024 * 1024 + 1) + 1)
  })

  it("has a snippet of what stands behind white space", () => {
    expect(mail(`Subject: x\n\na${" ".repeat(300)}b${"\n".repeat(300)}c`).snippet).toBe("a b c")
  })

  it("in Base64 has the footer of a list below it, after an empty line as well", () => {
    const encoded = Buffer.from("Hello, this is the text of a letter.").toString("base64")
    const text = (between: string) =>
      mail(`Content-Transfer-Encoding: base64\n\n${encoded}\n${between}_____\nThe list\n`).text
    expect([text(""), text("\n")]).toEqual(Array(2).fill("Hello, this is the text of a letter.\n_____\nThe list\n"))
  })

  it("is decoded up to a limit within a run of spaces", () => {
    const raw = bytes("Content-Transfer-Encoding: quoted-printable\n\nab   cd")
    expect(Decode.bytes(raw, index(raw), 3).toString()).toBe("ab ")
  })
})

describe("The text of an attachment", () => {
  const textOf = async (type: string, content: Buffer | string) => {
    const head = `Content-Type: ${type}\r\nContent-Disposition: attachment\r\n\r\n`
    const { text } = await Effect.runPromise(Effect.provide(AttachmentReader, Attachments.layer))
    return Effect.runPromise(text(Buffer.concat([Buffer.from(head), Buffer.from(content)]), 0))
  }

  it("is whole up to its limit, which is smaller for HTML", async () => {
    for (const [type, most] of [
      ["text/plain", 1024 * 1024],
      ["text/html", 256 * 1024],
      ["application/xhtml+xml", 256 * 1024],
    ] as const) {
      for (const [size, whole] of [
        [most, true],
        [most + 1, false],
      ] as const) {
        const found = await textOf(type, "a".repeat(size))
        expect([found?.whole, found?.text?.length, found?.size], type).toEqual([whole, most, size])
      }
    }
    expect((await textOf("application/xhtml+xml", "<p>a</p>"))?.text).toBe("a")
  })

  it("depends on the type alone if the type says whether it is text", async () => {
    for (const type of ["text/x-log", "message/delivery-status", "application/vnd.a+json", "application/jsonl"])
      expect((await textOf(type, "a\u0000\u00ff"))?.text, type).not.toBeNull()
    for (const type of ["image/svg+xml", "audio/x-a", "video/x-a", "font/x-a", "application/pdf", "application/zip"])
      expect((await textOf(type, "a"))?.text, type).toBeNull()
  })

  it("of an unknown type is text if its first bytes are, even if they end within a character", async () => {
    const within = `${"a".repeat(4_095)}é`
    expect((await textOf("application/x-unknown", within))?.text).toBe(within)
    expect((await textOf("application/x-unknown", "a\u0001"))?.text).toBeNull()
    expect((await textOf("application/x-unknown", ""))?.text).toBeNull()
  })
})

describe("A header", () => {
  const keys = (text: string) => Header.read(bytes(text), 0, bytes(text).length).rows.map(({ key }) => key)

  it("has fields with white space before the colon, and only ASCII names", () => {
    expect(keys("A\t: 1\nB : 2\nÄ: 3\n\nx")).toEqual(["a", "b"])
  })

  it("of a part may contain the line of a mailbox file", () => {
    const letter = multipart("b", ">From a@x.example Mon Mar  2\nContent-Type: text/html\n\n<p>a</p>")
    expect(mail(letter).html).toBe("<p>a</p>")
  })

  it("is read up to 2,000 lines and 256 KiB, and its body is found behind", () => {
    const many = (lines: number) => `${"A: 1\n".repeat(lines)}\nbody`
    for (const [lines, read] of [
      [2_000, 2_000],
      [2_001, 2_000],
    ] as const) {
      const raw = bytes(many(lines))
      const { rows, bodyStart } = Header.read(raw, 0, raw.length)
      expect([rows.length, raw.toString("latin1", bodyStart)]).toEqual([read, "body"])
    }
    const long = bytes(`A: ${"a".repeat(256 * 1024)}\nB: 1\nC: 2\n\nbody`)
    const { rows, bodyStart } = Header.read(long, 0, long.length)
    expect([rows.map(({ key }) => key), long.toString("latin1", bodyStart)]).toEqual([["a"], "body"])
    const endless = bytes("A: 1\n".repeat(2_001))
    expect(Header.read(endless, 0, endless.length).bodyStart).toBe(endless.length)
  })

  it("has addresses up to 32 KiB of all its address fields", () => {
    const people = Array.from({ length: 100 }, (_, n) => `${"a".repeat(190)}${n}@x.example`).join(",")
    const { to, cc, bcc } = mail(`To: ${people}\nCc: ${people}\nBcc: a@x.example\n\nx`)
    expect([to.length, cc.length, bcc.length]).toEqual([100, 61, 0])
  })

  it("has groups whose members are recipients", () => {
    const { to } = mail("To: Team: a@x.example, B <b@x.example>; c@x.example\n\nx")
    expect(to.map(({ address }) => address)).toEqual(["a@x.example", "b@x.example", "c@x.example"])
  })

  it("has comments, in which quotation marks have no meaning and which must end", () => {
    expect(Parameters.withoutComments('a (b "c) d')).toBe("a  d")
    expect(Parameters.withoutRemarks("text/plain; name=a (b")).toBe("text/plain; name=a (b")
    expect(Parameters.withoutRemarks("text/plain (b; name=a")).toBe("text/plain (b; name=a")
  })
})

describe("The structure for mail programs", () => {
  it("has addresses with quoted local parts and source routes", () => {
    const { envelope, root } = Structure.make(bytes('From: "a@b"@x.example\nTo: <@r.example:c@y.example>\n\nx'))
    expect(envelope).toContain('((NIL NIL "\\"a@b\\"" "x.example"))')
    expect(envelope).toContain('((NIL "@r.example" "c" "y.example"))')
    expect(root.h).toBe(0)
  })

  it("omits fields of parts beyond 128 KiB, and envelopes of embedded messages beyond 64 KiB", () => {
    const described = (at: number) => `Content-Description: ${at}${"a".repeat(4_000)}\n\nx`
    const { root } = Structure.make(bytes(multipart("b", ...Array.from({ length: 40 }, (_, at) => described(at)))))
    expect(root.parts!.filter(({ d }) => d !== undefined)).toHaveLength(32)
    const embedded = `Content-Type: message/rfc822\n\nSubject: ${"a".repeat(4_000)}\n\nx`
    const nested = Structure.make(bytes(multipart("b", ...Array.from({ length: 40 }, () => embedded)))).root.parts!
    const withSubject = nested.filter(({ env }) => env!.includes("aaa")).length
    expect([withSubject, nested.at(-1)!.env]).toEqual([17, "(NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL)"])
  })
})

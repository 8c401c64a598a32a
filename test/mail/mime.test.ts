import { fold } from "@svc/domain/mail/SearchText"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import * as fc from "fast-check"
import iconv from "iconv-lite"
import { createTransport } from "nodemailer"
import { describe, expect, it } from "vitest"

/** A message composed by nodemailer, an independent implementation. */
const compose = async (mail: object): Promise<Buffer> => {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: "windows" })
  return (await transport.sendMail(mail)).message as Buffer
}

/** Text in any script, without control characters and line ends. */
const line = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 60 })
  .filter((text) => !/[\p{C}\p{Z}]/u.test(text.replaceAll(" ", "")) && text.trim() !== "")
const spaces = (text: string) => text.replace(/\s+/g, " ").trim()

describe("A composed message", () => {
  it("is decoded without loss, in every script", async () => {
    await fc.assert(
      fc.asyncProperty(
        line,
        line,
        fc.array(line, { minLength: 1, maxLength: 5 }),
        line,
        async (subject, name, lines, filename) => {
          const text = lines.join("\r\n")
          const raw = await compose({
            from: { address: "ada@example.org", name },
            to: "bob@example.org",
            subject,
            text,
            html: `<p>${lines.length}</p>`,
            attachments: [{ filename, content: Buffer.from(text), contentType: "application/octet-stream" }],
          })
          const mail = parse(raw)
          expect(spaces(mail.subject)).toBe(spaces(subject))
          expect(mail.from?.address).toBe("ada@example.org")
          expect(mail.text?.replace(/\r?\n$/, "").split(/\r?\n/)).toEqual(text.split("\r\n"))
          expect(mail.attachments).toMatchObject([{ index: 0, size: Buffer.byteLength(text) }])
        },
      ),
      { numRuns: 60 },
    )
  })

  it.each([
    ["windows-1252", "Größe – naïve € œuvre"],
    ["iso-8859-15", "Prix 12 € déjà"],
    ["koi8-r", "Съешь ещё этих мягких булок"],
    ["shift_jis", "こんにちは世界"],
    ["gb18030", "你好，世界"],
    ["euc-kr", "안녕하세요"],
    ["utf-16le", "plain"],
  ])("in %s is decoded", (charset, text) => {
    const body = iconv.encode(text, charset)
    const head = Buffer.from(
      `From: a@example.org\r\nContent-Type: text/plain; charset=${charset}\r\nContent-Transfer-Encoding: base64\r\n\r\n`,
    )
    const mail = parse(Buffer.concat([head, Buffer.from(body.toString("base64").replace(/.{76}/g, "$&\r\n"))]))
    expect(mail.text?.trim()).toBe(text)
    expect(mail.search_text).toContain(fold(text))
  })

  it.each([
    ["euc-kr", "cp949", "똠방각하 펲시콜라"],
    ["KSC5601", "cp949", "똠방각하"],
    ["cseuckr", "cp949", "똠방각하"],
    ["Korean", "cp949", "똠방각하"],
    ["windows-949", "cp949", "똠방각하"],
    ["uhc", "cp949", "똠방각하"],
    ["big5", "big5hkscs", "碁銹恒裏墻粧嫺 〇"],
    ["x-big5", "big5hkscs", "正體中文"],
    ["Big5-HKSCS", "big5hkscs", "啲嘢喺度"],
    ["cp950", "big5hkscs", "正體中文"],
    ["x-mac-ce", "maccenteuro", "Příliš žluťoučký"],
  ])("in %s includes the characters that %s adds", (name, encoding, text) => {
    const head = `Content-Type: text/plain; charset=${name}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n`
    expect(parse(Buffer.concat([Buffer.from(head), iconv.encode(text, encoding)])).text).toBe(text)
  })

  it.each([
    ["iso-2022-kr", "\x1b$)C\r\n\x0e>H3g\x0f!\r\n\x0e>H", "\n안녕!\n안"],
    ["iso-2022-jp-2", "\x1b$A<:Ky\x1b$(C>H\x1b$BF|K\\\x1b(B x \x1b$(D0!\x1b(J\\", "己所안日本 x 丂¥"],
    ["iso-2022-jp-3", "\x1b$(QF|K\\\x1b(B", "日本"],
    ["cp50221", "\x1b(I12\x1b(B", "ｱｲ"],
    ["iso-2022-cn", "\x1b$)A\x0e<:Ky\x0f", "己所"],
    ["hz-gb-2312", "This ~{<:Ky2;S{~}~\r\n ~~", "This 己所不欲 ~"],
    ["hz", "~{<", "\ufffd"],
    ["iso-2022-kr", "\x1b\x1b$\x0e\x7f>", "$\x7f\ufffd".replace("\x7f", "")],
  ])("in %s, which switches character sets, is decoded: %j", (name, bytes, text) => {
    const head = `Content-Type: text/plain; charset=${name}\r\n\r\n`
    expect(parse(Buffer.from(head + bytes, "latin1")).text).toBe(text)
  })

  it("in a set that is not a character set is read unchanged", () => {
    for (const name of ["hex", "base64", "binary", "hz\u0000"]) {
      expect(parse(Buffer.from(`Content-Type: text/plain; charset=${name}\r\n\r\nas it stands`)).text).toBe(
        "as it stands",
      )
    }
  })

  it("with encoded words in its subject is decoded, however they are split", () => {
    const subject = "Ünïcödé ".repeat(20).trim()
    const bytes = Buffer.from(subject)
    // Split within characters, as some senders do.
    const words = Array.from(
      { length: Math.ceil(bytes.length / 7) },
      (_, at) => `=?utf-8?B?${bytes.subarray(at * 7, at * 7 + 7).toString("base64")}?=`,
    )
    const raw = `From: a@example.org\r\nSubject: ${words.join("\r\n ")}\r\n\r\nx\r\n`
    expect(spaces(parse(Buffer.from(raw)).subject)).toBe(subject)
  })
})

describe("A thousand parts", () => {
  const parts = (fields: (at: number) => string) => {
    const pieces = Array.from({ length: 990 }, (_, at) => `--b\r\n${fields(at)}\r\n\r\nx\r\n`)
    return Buffer.from(
      `From: a@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${pieces.join("")}--b--\r\n`,
    )
  }
  const names = (raw: Buffer) => parse(raw).attachments.map(({ filename }) => filename)

  it("each have their file name, in any common spelling", () => {
    const raw = parts(
      (at) => `Content-Type: image/png\r\nContent-Disposition: attachment; filename*=utf-8''B%C3%A4r${at}.png`,
    )
    expect(names(raw)).toEqual(Array.from({ length: 990 }, (_, at) => `Bär${at}.png`))
  })

  it.each([
    ["in encoded words", `image/png; name="${"=?cp437?q?=84?= =?utf-7?q?=41?=\r\n ".repeat(50)}"`, "=?cp437"],
    [
      "in parameters",
      `image/png; name*=cp437''%84;\r\n ${Array.from({ length: 60 }, (_, n) => `n${n}*=u''a`).join(";\r\n ")}`,
      "=84",
    ],
  ])("have no more decoded %s than the limit of a message", (_, type, undecoded) => {
    const found = names(parts(() => `Content-Type: ${type}`))
    expect(found).toHaveLength(990)
    expect(found[0]).toMatch(/^ä/)
    expect(found.at(-1)).toContain(undecoded)
  })

  it("have no parameter read behind 120 characters once all fields together have 128 KiB", () => {
    const found = names(parts(() => `Content-Type: image/png; x=${"a".repeat(150)}; name=f.png`))
    expect([found[0], found.at(-1)]).toEqual(["f.png", null])
  })
})

describe("Arbitrary bytes", () => {
  const word = fc.constantFrom(
    "Content-Type: multipart/mixed; boundary=b\r\n",
    "Content-Type: message/rfc822\r\n",
    "Content-Type: text/html; charset=nonsense\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Transfer-Encoding: quoted-printable\r\n",
    "Content-Disposition: attachment; filename*=utf-8''%FF%00\r\n",
    "Subject: =?utf-8?B?////?= =?x?q?=00?=\r\n",
    'From: a@example.org, "b" <c@d>\r\n',
    "References: <a> <b\r\n",
    "\r\n",
    "--b\r\n",
    "--b--\r\n",
    "=3D=\r\n",
    "&#0;&#xD800;&amp;<script>",
  )
  const bytes = fc
    .array(
      fc.oneof(
        word.map((text) => Buffer.from(text)),
        fc.uint8Array({ maxLength: 40 }).map((part) => Buffer.from(part)),
      ),
      {
        maxLength: 60,
      },
    )
    .map((parts) => Buffer.concat(parts))

  it("parse to values that PostgreSQL and JSON can store", () => {
    fc.assert(
      fc.property(bytes, (raw) => {
        const text = JSON.stringify(parse(raw))
        expect(text).not.toContain("\\u0000")
        expect(text.isWellFormed()).toBe(true)
        expect(text).not.toMatch(/\\ud[89a-f]/i)
      }),
      { numRuns: 500 },
    )
  })
})

describe("The header of a message", () => {
  it.each([
    ["Subject: a\r\nTo: c@x.example\r\n\r\nbody", ["Subject", "To"], "body"],
    ["Subject: a\n\nbody", ["Subject"], "body"],
    // A line that begins with a lone CR, or consists of white space, is not empty.
    ["Subject: a\r\n\rX-Y: b\r\nTo: c@x.example\r\n\r\nbody", ["Subject", "To"], "body"],
    ["Subject: a\r\n \r\nTo: c@x.example\r\n\r\nbody", ["Subject", "To"], "body"],
    ["Subject: a\r\r\nTo: c@x.example\r\n\r\nbody", ["Subject", "To"], "body"],
    ["\r\nbody", [], "body"],
    ["Subject: a\r\n\r", ["Subject"], ""],
    ["Subject: a\r\n", ["Subject"], ""],
    ["Subject: a", ["Subject"], ""],
  ])("ends at the first empty line: %j", (raw, names, text) => {
    const mail = parse(Buffer.from(raw))
    expect([mail.headers.map(({ name }) => name), mail.text]).toEqual([names, text])
  })
})

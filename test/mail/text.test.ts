import * as Attachments from "@svc/mail-gateway/mail/Attachments"
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import * as Decode from "@svc/mail-gateway/mail/mime/Decode"
import { isModest } from "@svc/mail-gateway/mail/mime/Header"
import { index, indexing, limits, type Part } from "@svc/mail-gateway/mail/mime/Part"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { Effect, Stream } from "effect"
import * as fc from "fast-check"
import { encode, wrap } from "nodemailer/lib/qp"
import { describe, expect, it } from "vitest"

const mail = (text: string) => parse(Buffer.from(text, "latin1"))
const html = (markup: string) => mail(`Content-Type: text/html; charset=utf-8\r\n\r\n${markup}`).text

describe("Text of HTML", () => {
  it.each([
    ["<p>Fish &amp; chips &eacute;&nbsp;&#8364;&#x20AC; &hellip; &xyzzy;</p>", "Fish & chips é €€ … &xyzzy;"],
    ["<h1>Head</h1><p>one</p><p>two<br>three</p>", "Head\n\none\n\ntwo\nthree"],
    ["<ul><li>a</li><li>b</li></ul>after", "- a\n- b\n\nafter"],
    ["<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"],
    ["<style>p { color: red }</style><script>if (a<b) x('</p>')</script>seen<!-- not > this -->", "seen"],
    ['<a title="1 > 2" href=x>link</a>', "link"],
    ["<head><title>no</title></head><body>yes</body>", "yes"],
    ["a<b>b</b>c <i>d</i> e", "abc d e"],
    ["un<closed", "un"],
    [
      "Donau&shy;dampf<wbr>schiff\u00c2\u00adfahrt&#8203;s&#xfeff;gesellschaft &shy; x",
      "Donaudampfschifffahrtsgesellschaft x",
    ],
    [
      "see <pre>\nif (a &lt; b) {\r\n\t&nbsp;x  =  1\n\n  }\n</pre> and  \n on<pre>a\n b</pre>",
      "see\n\nif (a < b) {\n\t x  =  1\n\n  }\n\nand on\n\na\n b",
    ],
    ["</pre>a  b <pre>c  d<style>e\n</style> f</pre>", "a b\n\nc  d f"],
  ])("%j", (markup, text) => {
    expect(html(markup)).toBe(text)
  })
})

describe("HTML that declares its charset", () => {
  const named = (head: string, body: string, field = "text/html") =>
    parse(Buffer.from(`Content-Type: ${field}\r\n\r\n${head}${body}`, "latin1")).text
  it.each([
    ['<meta charset="iso-8859-2">', "\xb1\xea", "ąę"],
    ["<html><head><META CHARSET=windows-1251></head>", "\xcf\xf0\xe8", "При"],
    ["<meta http-equiv='Content-Type' content='text/html; charset=koi8-r'>", "\xf0\xd2\xc9", "При"],
    ["<meta name=charset content=x><meta charset=utf-8>", "\xc3\xa9", "é"],
    ['<meta charset="utf-16">', "\xc3\xa9", "é"],
    ["<p>charset=koi8-r", "\xc3\xa9", "charset=koi8-r\n\né"],
  ])("%s", (head, bytes, text) => {
    expect(named(head, `<p>${bytes}</p>`)).toBe(text)
  })
  it("uses the charset of the part if it has one, and ignores declarations after 1,024 bytes", () => {
    expect(named("<meta charset=koi8-r>", "\xe9", "text/html; charset=iso-8859-1")).toBe("é")
    expect(named("<meta charset=koi8-r>", "\xc3\xa9", 'text/html; charset=""')).toBe("ц╘")
    expect(named(`<!--${" ".repeat(1_100)}--><meta charset=koi8-r>`, "\xc3\xa9")).toBe("é")
    expect(named("<meta charset=koi8-r>", "\xc3\xa9", "text/plain")).toBe("<meta charset=koi8-r>é")
    const base64 = Buffer.from("<meta charset=koi8-r><p>\xf0", "latin1").toString("base64")
    expect(mail(`Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64}\r\n`).text).toBe("П")
  })
})

describe("Bodies", () => {
  const parts = (type: string, ...all: ReadonlyArray<readonly [type: string, body: string]>) =>
    `Content-Type: multipart/${type}; boundary=b${type}\r\n\r\n` +
    all.map(([one, body]) => `--b${type}\r\nContent-Type: ${one}\r\n\r\n${body}\r\n`).join("") +
    `--b${type}--\r\n`

  it("have no control characters except tabs, line breaks and form feeds, and HTML has none", () => {
    const controls = String.fromCharCode(...Array.from({ length: 31 }, (_, n) => n + 1), 127)
    const written = controls.replace(/[\r\n]/g, "")
    expect(mail(`Content-Type: text/plain\r\n\r\na${written}[31mb\r\nc`).text).toBe("a\t\f[31mb\nc")
    expect(mail(`Content-Type: text/html\r\n\r\n<p>a${written}[31mb`).html).toBe("<p>a\t\f[31mb")
  })

  it("come with a subject, names and file names of one line without control characters", () => {
    const hidden = "=0D=0ABcc:_x=1B[2J=07=C2=9B=E2=80=A8z"
    const read = mail(
      [
        `From: "=?utf-8?q?a${hidden}?=" <a@example.org>`,
        "To: =?utf-8?q?=1B=0D?= <b@example.org>",
        `Subject: =?utf-8?q?a${hidden}?=`,
        `Content-Type: application/pdf; name="=?utf-8?q?a${hidden}?="`,
        "",
        "x",
      ].join("\r\n"),
    )
    expect(read.subject).toBe("a Bcc: x [2J z")
    expect(read.from).toEqual({ address: "a@example.org", name: "a Bcc: x [2J z" })
    expect(read.to).toEqual([{ address: "b@example.org", name: null }])
    expect(read.attachments).toMatchObject([{ filename: "a Bcc: x [2J z" }])
  })

  it("are concatenated in their order", () => {
    const text = mail(parts("mixed", ["text/plain", "one"], ["text/html", "<p>two"], ["text/plain", "three"])).text
    expect(text).toBe("one\ntwo\nthree")
  })
  it("include HTML and a list's footer, which does not replace it", () => {
    const list = mail(parts("mixed", ["text/html", "<p>what was written"], ["text/plain", "_____\nfooter"]))
    expect(list.text).toBe("what was written\n_____\nfooter")
    expect(list.html).toBe("<p>what was written")
  })
  it("that are alternatives are read once, preferring non-empty plain text", () => {
    const both = parts("alternative", ["text/plain", "plain"], ["text/html", "<p>rich only"])
    expect(mail(both)).toMatchObject({ text: "plain", html: "<p>rich only" })
    expect(mail(both).search_text).toContain("rich only")
    expect(mail(parts("alternative", ["text/plain", " "], ["text/html", "<p>rich"])).text).toBe("rich")
  })
})

describe("format=flowed", () => {
  const flowed = (lines: ReadonlyArray<string>, more = "") =>
    mail(`Content-Type: text/plain; format=flowed${more}\r\n\r\n${lines.join("\r\n")}`).text

  it("is unwrapped, respecting quote depth, signatures and space-stuffing", () => {
    expect(flowed(["one ", "two", "", "> a ", "> b", ">> c ", "> d", " >not a quote", "-- ", "Ada ", "x"])).toBe(
      "one two\n\n> a b\n>> c \n> d\n>not a quote\n-- \nAda x",
    )
    expect(flowed(["one ", "two"], "; delsp=yes")).toBe("onetwo")
    // The separator of a signature also ends a flowed line before it.
    expect(flowed(["Bye ", "-- ", "Ada"])).toBe("Bye \n-- \nAda")
  })
  it("is not assumed without the parameter", () => {
    expect(mail("\r\none \r\ntwo").text).toBe("one \ntwo")
  })
})

describe("Transfer encodings", () => {
  it("in Base64 continue after inner padding", () => {
    expect(mail("Content-Transfer-Encoding: base64\r\n\r\nb25l\r\nIA==\r\ndHdv\r\nIQ=\r\nPw").text).toBe("one two!?")
  })
  it("yield as many bytes as counted, equal to those of other decoders", () => {
    const piece = fc.constantFrom(
      "=",
      "=\r\n",
      "=3D",
      "=e9",
      "=\t\r\n",
      " ",
      "\t",
      "\r\n",
      "a",
      "é",
      "==",
      "QUJD",
      "QQ==",
    )
    const bodies = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(""))
    fc.assert(
      fc.property(bodies, fc.constantFrom("base64", "quoted-printable"), (body, encoding) => {
        const raw = Buffer.from(`Content-Transfer-Encoding: ${encoding}\r\n\r\n${body}`, "latin1")
        const part = index(raw)
        expect(Decode.size(raw, part)).toBe(Decode.bytes(raw, part).length)
      }),
      { numRuns: 1_000 },
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (content) => {
        for (const [encoding, body] of [
          ["base64", Buffer.from(content).toString("base64").replace(/.{20}/g, "$&\r\n")],
          ["quoted-printable", wrap(encode(Buffer.from(content)))],
        ] as const) {
          const raw = Buffer.from(`Content-Transfer-Encoding: ${encoding}\r\n\r\n${body}`, "latin1")
          expect(Decode.bytes(raw, index(raw))).toEqual(Buffer.from(content))
        }
      }),
    )
  })
})

describe("Encoded words", () => {
  it.each([
    ["Subject: =?iso-8859-1?q?Gr\xfc\xdfe?=", "Grüße"],
    ["Subject: =?utf-8?q?Gr\xc3\xbc\xc3\x9fe?=", "Grüße"],
    ["Subject: =?koi8-r?q?\xf0\xd2\xc9?=", "При"],
    ["Subject: =?utf-8?q?a_b=5F?= c =?utf-8?b?ZA==?=", "a b_ c d"],
    ["Subject: =?utf-8?q?a?=\r\n\t =?utf-8?q?b?=  =?iso-8859-1?q?c?=\r\n d", "abc d"],
    ["Subject: =?utf-8?q?a?=\r\n =?iso-8859-1?q?=E9?= =?x-unknown?q?b?=", "aéb"],
    ["Subject: =?utf-8*en?b?w7Y?= =?utf-8?z?no?=", "ö =?utf-8?z?no?="],
    ["Subject: Gr\xc3\xbc\xc3\x9fe", "Grüße"],
  ])("%j", (field, subject) => {
    expect(mail(`${field}\r\n\r\n`).subject).toBe(subject)
  })
})

describe("A message that is expensive to parse", () => {
  const of = (top: string, piece: string, bytes: number) =>
    Buffer.from(top + piece.repeat(Math.floor(bytes / piece.length)), "latin1")
  const million = 1_000_000

  it("is rejected before parsing if its header is too large", () => {
    expect(isModest(of("", "X: y\r\n", 6 * 2_000))).toBe(true)
    expect(isModest(of("", "X: y\r\n", 6 * 2_001))).toBe(false)
    expect(isModest(of("X: y\r\n", " folded\r\n", 20_000))).toBe(false)
    expect(isModest(Buffer.from(`X: ${"y".repeat(256 * 1024 - 7)}\r\n\r\nbody`))).toBe(true)
    expect(isModest(Buffer.from(`X: ${"y".repeat(256 * 1024)}\r\n\r\nbody`))).toBe(false)
    expect(isModest(Buffer.from(`X: ${"y".repeat(300 * 1024)}`))).toBe(false)
    expect(isModest(of("X: y\r\n\r\n", "body\r\n", million))).toBe(true)
  })
  it("may have boundaries that are prefixes of each other", () => {
    let text = ""
    for (let depth = 1; depth <= 60; depth++) {
      text += `Content-Type: multipart/mixed; boundary=${"b".repeat(depth)}\r\n\r\n--${"b".repeat(depth)}\r\n`
    }
    const root = index(of(`${text}\r\n`, `--${"b".repeat(70)}\r\n`, 20 * million))
    let depth = 0
    for (let part = root; part.parts.length > 0; part = part.parts[0]!) depth++
    expect(depth).toBe(limits.depth)
    const inner = "Content-Type: multipart/mixed; boundary=bb\r\n\r\n--bb\r\n\r\none\r\n--bb--\r\n"
    const two = mail(`Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n${inner}--b\r\n\r\ntwo\r\n--b--\r\n`)
    expect(two.text).toBe("one\ntwo")
  })
  it.each([
    [21, "mixed"],
    [51, "mixed"],
    [51, "related"],
    [300, "mixed"],
    [60, "alternative"],
  ])("nested %i levels deep in multipart/%s loses and repeats no text", (levels, type) => {
    let [top, bottom] = ["", ""]
    for (let level = 1; level <= levels; level++) {
      top += `Content-Type: multipart/${type}; boundary=b${level}\r\n\r\n--b${level}\r\n`
      bottom = `--b${level}\r\n\r\nafter ${level}\r\n--b${level}--\r\n${bottom}`
    }
    const letter = `${top}Content-Type: text/plain\r\n\r\ninnermost\r\n`
    const deepest = (part: Part): number => 1 + Math.max(0, ...part.parts.map(deepest))
    expect(mail(letter).text!.trim()).toBe("innermost")
    const both = index(Buffer.from(letter + bottom))
    expect(deepest(both)).toBeLessThanOrEqual(limits.depth + 1)
    const lines = mail(letter + bottom).text!.split("\n")
    expect(lines[0]).toBe("innermost")
    expect(mail(letter + bottom).attachments).toEqual([])
    if (type !== "alternative")
      expect(lines).toEqual(["innermost", ...Array.from({ length: levels }, (_, n) => `after ${levels - n}`)])
  })
  it("nested in 25 messages keeps what is beyond the limit as one attachment", () => {
    const letter = `${"Content-Type: message/rfc822\r\n\r\n".repeat(25)}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\none\r\n--b--\r\n`
    let part = index(Buffer.from(letter))
    for (; part.parts.length > 0; part = part.parts[0]!) expect(part.parts).toHaveLength(1)
    expect(part.type).toBe("message/rfc822")
  })
  it("is searched in steps without missing a delimiter between two", () => {
    const head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n"
    for (let shift = -6; shift <= 6; shift++) {
      const filler = "-\n".repeat(1024 * 1024).slice(0, 1024 * 1024 + shift)
      const { parts } = index(Buffer.from(`${head}${filler}\r\n--b\r\n\r\ntwo\r\n--b--\r\n`))
      expect(parts).toHaveLength(2)
    }
    const steps = (raw: Buffer) => [...indexing(raw)].length
    expect(steps(of(head, "-\r\n", 20 * million))).toBeGreaterThan(15)
    expect(steps(of(head, "--\r\n", 20 * million))).toBeGreaterThan(40)
    expect(steps(of(head, "--b\r\nX: y\r\n\r\n", 20 * million))).toBeGreaterThan(40)
  })
  it("is read up to the limits on parts, lines, addresses and ids", () => {
    const parts = index(of("Content-Type: multipart/mixed; boundary=b\r\n\r\n", "--b\r\n\r\nx\r\n", 20 * million))
    expect(parts.parts.length).toBe(limits.parts)
    const lines = of("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n", "--\r\n", 20 * million)
    expect(index(Buffer.concat([lines, Buffer.from("--b\r\n\r\nlate\r\n")])).parts).toHaveLength(1)
    const { to, references } = mail(`To: ${"a@b.c,".repeat(30_000)}\r\nReferences: ${"<a@b>".repeat(9_000)}\r\n\r\n`)
    expect(to).toHaveLength(500)
    expect(references).toHaveLength(100)
  })
  it.each([
    ["Content-Transfer-Encoding: quoted-printable", " "],
    ["Content-Transfer-Encoding: quoted-printable", "=41"],
    ["Content-Transfer-Encoding: base64", "QQ=="],
    ["Content-Type: text/html", "<b>"],
    ["Content-Type: text/html", "<!--"],
    ["Content-Type: text/html", "&amp"],
    ["Content-Type: text/plain; format=flowed", "a \r\n"],
    ["Content-Type: text/plain; charset=utf-7", "+AAA-"],
  ])("with %s of %j is read up to a limit", (field, piece) => {
    const parsed = parse(of(`${field}\r\n\r\n`, piece, 20 * million))
    expect(parsed.text?.length ?? 0).toBeLessThanOrEqual(2 * 1024 * 1024)
    expect(Buffer.byteLength(parsed.search_text)).toBeLessThanOrEqual(1024 * 1024)
  })
})

describe("An attachment", () => {
  it("is extracted by its index, with the announced size", async () => {
    const raw = Buffer.from(
      "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\nContent-Type: image/png\r\n" +
        "Content-Disposition: attachment; filename*=utf-8''%C3%BC.png\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
        "AAEC\r\nAwQ=\r\n--b--\r\n",
    )
    const { read } = await Effect.runPromise(Effect.provide(AttachmentReader, Attachments.layer))
    expect(parse(raw).attachments).toEqual([{ index: 0, filename: "ü.png", content_type: "image/png", size: 5 }])
    const found = await Effect.runPromise(read(raw, 0))
    expect(found).toMatchObject({ filename: "ü.png", content_type: "image/png", size: 5 })
    const bytes = async (start: number, end: number) =>
      Buffer.concat(await Effect.runPromise(Stream.runCollect(found!.content(start, end))))
    expect(await bytes(0, 5)).toEqual(Buffer.from([0, 1, 2, 3, 4]))
    expect(await bytes(1, 3)).toEqual(Buffer.from([1, 2]))
    expect(await Effect.runPromise(read(raw, 1))).toBe(undefined)
  })

  it.each(["base64", "quoted-printable", "8bit"])("in %s is the same in pieces and as a whole", async (encoding) => {
    const content = Buffer.from(Array.from({ length: 1_500_000 }, (_, n) => (n * 7919) % 251))
    const encoded = {
      // Lines of a length that is not a multiple of four.
      base64: content.toString("base64").replace(/(.{75})/g, "$1\r\n"),
      "quoted-printable": Array.from(content, (byte) => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`)
        .join("")
        .replace(/(.{75})/g, "$1=\r\n"),
      "8bit": content.toString("hex"),
    }[encoding]!
    const raw = Buffer.from(
      `Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: image/png\r\n` +
        `Content-Transfer-Encoding: ${encoding}\r\n\r\n${encoded}\r\n--b--\r\n`,
    )
    const { read } = await Effect.runPromise(Effect.provide(AttachmentReader, Attachments.layer))
    const found = (await Effect.runPromise(read(raw, 0)))!
    const complete = encoding === "8bit" ? Buffer.from(encoded) : content
    expect(found.size).toBe(complete.length)
    expect(parse(raw).attachments[0]!.size).toBe(complete.length)
    const pieces = await Effect.runPromise(Stream.runCollect(found.content(700_001, 1_400_002)))
    expect(pieces.length).toBeGreaterThan(2)
    expect(Buffer.concat(pieces).equals(complete.subarray(700_001, 1_400_002))).toBe(true)
  })
})

describe("A uuencoded file", () => {
  const encoded = "begin 644 hello.txt\r\n-:&5L;&\\L('=O<FQD\"@``\r\n`\r\nend\r\n"

  it("within text is kept as text and is not an attachment", () => {
    const letter = mail(`Subject: old\r\n\r\nHere it is.\r\n\r\n${encoded}`)
    expect(letter.text).toBe(`Here it is.\n\n${encoded.replaceAll("\r\n", "\n")}`)
    expect(letter.attachments).toEqual([])
  })
  it("in a part of its own is an attachment with its bytes unchanged", () => {
    const letter = mail(
      "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHere it is.\r\n--b\r\n" +
        `Content-Type: application/octet-stream; name=hello.txt\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\n${encoded}--b--\r\n`,
    )
    expect(letter.text).toBe("Here it is.")
    expect(letter.attachments).toMatchObject([{ filename: "hello.txt", size: encoded.length - 2 }])
  })
})

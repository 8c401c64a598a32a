/**
 * How messages of many kinds are read: their parts, what is shown, their structure for IMAP, what would be sent of them,
 * and what they report. The files in `readings/` hold the results; `vitest run test/mail/readings --update=all` writes
 * them anew after an intended change.
 */
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import * as Attachments from "@svc/mail-gateway/mail/Attachments"
import * as ExtractedContent from "@svc/mail-gateway/mail/composing/ExtractedContent"
import * as EncodedWords from "@svc/mail-gateway/mail/mime/EncodedWords"
import * as Header from "@svc/mail-gateway/mail/mime/Header"
import * as Parameters from "@svc/mail-gateway/mail/mime/Parameters"
import { index, type Part } from "@svc/mail-gateway/mail/mime/Part"
import * as Structure from "@svc/mail-gateway/mail/mime/Structure"
import * as Transfer from "@svc/mail-gateway/mail/mime/Transfer"
import { charset } from "@svc/mail-gateway/mail/mime/Charset"
import { unwrap } from "@svc/mail-gateway/mail/mime/Flowed"
import { headOnly, parse } from "@svc/mail-gateway/mail/ParsedMail"
import * as BounceReport from "@svc/mail-gateway/mail/sending/BounceReport"
import { Effect, Stream } from "effect"
import { expect, it } from "vitest"
import { attachments } from "./awkward/Attachments.ts"
import { bodies } from "./awkward/Bodies.ts"
import { boundaries } from "./awkward/Boundaries.ts"
import { fields } from "./awkward/Fields.ts"

const lines = (...all: ReadonlyArray<string>) => Buffer.from(`${all.join("\r\n")}\r\n`, "latin1")
const latin = (text: string) => Buffer.from(text).toString("latin1")
const inFile = (name: string, all: ReadonlyArray<string>) =>
  expect(`${all.join("\n").replaceAll("\r\n", "\n").toWellFormed()}\n`).toMatchFileSnapshot(`readings/${name}.txt`)
const short = (text: string) => (text.length > 400 ? `${text.slice(0, 200)}… (${text.length})` : text)

/** A multipart of the parts, each a list of lines. */
const mixed = (head: ReadonlyArray<string>, ...parts: ReadonlyArray<ReadonlyArray<string>>) =>
  lines(...head, "", "preamble", ...parts.flatMap((part) => ["--b", ...part]), "--b--", "epilogue")
const of = (type: string) => ["From: A <a@x.example>", `Content-Type: ${type}; boundary=b`]
const plain = (text: string, ...head: ReadonlyArray<string>) => ["Content-Type: text/plain", ...head, "", text]
const html = (text: string, ...head: ReadonlyArray<string>) => [
  "Content-Type: text/html; charset=utf-8",
  ...head,
  "",
  text,
]
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
const image = (...head: ReadonlyArray<string>) => [
  "Content-Type: image/png",
  "Content-Transfer-Encoding: base64",
  ...head,
  "",
  pixel,
]

const letters: Readonly<Record<string, Buffer>> = {
  "every field of an envelope": lines(
    "Date: Fri, 20 Nov 2026 12:00:00 +0000",
    "From: A <a@x.example>, B <b@x.example>",
    "Sender: S <s@x.example>",
    "Reply-To: R <r@x.example>",
    'To: "T, U" <t@x.example>, Group: <g@x.example>, h@x.example;, Empty:;, bare@x.example',
    "Cc: =?utf-8?q?J=C3=B6rg?= <j@x.example>",
    "Bcc: hidden@x.example",
    "Subject: =?utf-8?b?R3LDvMOfZQ==?= and more",
    "Message-ID: <one@x.example>",
    "In-Reply-To: <zero@x.example> (a comment)",
    "References: <a@x.example> <b@x.example>",
    "",
    "body",
  ),
  "an envelope without fields": lines("X-Other: x", "", "body"),
  "several authors in two fields": lines(
    "From: a@x.example",
    "From: b@x.example",
    "Subject: one",
    "Subject: two",
    "",
    "body",
  ),
  "no author": lines("Subject: x", "", "body"),
  "ids without brackets": lines(
    "From: a@x.example",
    "Message-ID: one@x.example",
    "In-Reply-To: two words",
    "References: <a@b> text <c@d>",
    "",
    "body",
  ),
  "every member of a part": mixed(of("multipart/mixed"), [
    'Content-Type: text/plain; charset="us-ascii"; name="a\\"b.txt"; format=flowed',
    "Content-ID: <part@x.example>",
    "Content-Description: What it is",
    "Content-Transfer-Encoding: QUOTED-PRINTABLE",
    "Content-MD5: Q2hlY2sgSW50ZWdyaXR5IQ==",
    'Content-Disposition: attachment; filename="c.txt"; size=3',
    "Content-Language: en, de",
    "Content-Location: https://x.example/part",
    "",
    "line one ",
    "goes on",
  ]),
  "one language and an odd encoding": mixed(of("multipart/mixed"), [
    "Content-Language: en",
    "Content-Transfer-Encoding: x odd",
    "",
    "text",
  ]),
  "an inline disposition without parameters": mixed(
    of("multipart/mixed"),
    plain("text", "Content-Disposition: inline"),
  ),
  "an embedded message": mixed(of("multipart/mixed"), plain("see below"), [
    "Content-Type: message/rfc822",
    "Content-Disposition: attachment",
    "",
    "From: B <b@x.example>",
    "Subject: inner",
    "Content-Type: text/html",
    "",
    "<p>inner</p>",
  ]),
  "an embedded message in base64": mixed(of("multipart/mixed"), [
    "Content-Type: message/rfc822",
    "Content-Transfer-Encoding: base64",
    "",
    "RnJvbTogYg0KDQp4",
  ]),
  "a message of a message": lines(
    "From: a@x.example",
    "Content-Type: message/rfc822",
    "",
    "From: b@x.example",
    "Subject: inner",
    "",
    "text",
  ),
  "alternatives with related images": mixed(of("multipart/alternative"), plain("plain text"), [
    'Content-Type: multipart/related; boundary=c; type="text/html"',
    "",
    "--c",
    ...html("<p>rich <img src=cid:one></p>"),
    "--c",
    ...image("Content-ID: <one>", "Content-Disposition: inline; filename=one.png"),
    "--c--",
  ]),
  "alternatives of which the plain one is empty": mixed(of("multipart/alternative"), plain(" "), html("<p>rich</p>")),
  "alternatives with an invitation": mixed(of("multipart/alternative"), plain("come"), html("<p>come</p>"), [
    "Content-Type: text/calendar; method=REQUEST; charset=utf-8",
    "",
    "BEGIN:VCALENDAR",
  ]),
  "alternatives of HTML only": mixed(of("multipart/alternative"), html("<p>one</p>"), html("<p>two</p>")),
  "text, HTML and text": mixed(of("multipart/mixed"), plain("one"), html("<b>two</b>"), plain("three")),
  "HTML only": lines(
    "From: a@x.example",
    "Content-Type: text/html",
    "",
    "<p>Hi <b>you</b><br>there</p><script>x</script>",
  ),
  "a named text only": lines("From: a@x.example", "Content-Type: text/plain; name=a.txt", "", "named"),
  "a named text beside a text": mixed(
    of("multipart/mixed"),
    plain("body"),
    ["Content-Type: text/plain; name=a.txt", "", "named"],
    plain("file", "Content-Disposition: attachment; filename=b.txt"),
  ),
  "an attachment only": lines(
    "From: a@x.example",
    "Content-Type: application/pdf; name=a.pdf",
    "Content-Transfer-Encoding: base64",
    "",
    "JVBERi0=",
  ),
  "no parts": lines("From: a@x.example", "Content-Type: multipart/mixed; boundary=b", "", "text without parts"),
  "no boundary": lines("From: a@x.example", "Content-Type: multipart/mixed", "", "text without a boundary"),
  "an empty multipart": lines("From: a@x.example", "Content-Type: multipart/mixed; boundary=b", "", "--b--"),
  "an unclosed multipart": lines(
    "From: a@x.example",
    "Content-Type: multipart/mixed; boundary=b",
    "",
    "--b",
    "",
    "text",
  ),
  "nested multiparts whose outer one ends early": lines(
    "From: a@x.example",
    "Content-Type: multipart/mixed; boundary=b",
    "",
    "--b",
    "Content-Type: multipart/mixed; boundary=c",
    "",
    "--c",
    "",
    "inner",
    "--b",
    "",
    "outer",
    "--b--",
  ),
  "a digest": mixed(
    of("multipart/digest"),
    ["", "From: b@x.example", "Subject: one", "", "text one"],
    ["Content-Type: text/plain", "", "note"],
  ),
  "flowed text": lines(
    "From: a@x.example",
    "Content-Type: text/plain; format=flowed; delsp=yes",
    "",
    "one ",
    "two",
    "> quoted ",
    "> more",
    " stuffed",
    "-- ",
    "signature",
  ),
  "flowed text that keeps spaces": lines(
    "From: a@x.example",
    "Content-Type: text/plain; format=Flowed",
    "",
    "one ",
    "two",
  ),
  "a signed message": mixed(of("multipart/signed"), plain("signed"), [
    "Content-Type: application/pgp-signature",
    "",
    "sig",
  ]),
  "an encrypted message": mixed(of("multipart/encrypted"), plain("x")),
  "an S/MIME message": lines("From: a@x.example", "Content-Type: application/x-pkcs7-mime", "", "x"),
  "an S/MIME attachment": mixed(of("multipart/mixed"), plain("text"), [
    "Content-Type: application/pkcs7-mime; name=a.p7m",
    "",
    "x",
  ]),
  "images with and without an id": mixed(
    of("multipart/related"),
    html("<img src=cid:a@b>"),
    image("Content-ID: <a@b>"),
    image("Content-ID: a b"),
    image(),
    ["Content-Type: image/svg+xml", "Content-ID: <s>", "", "<svg/>"],
    image("Content-ID: <a@b>"),
  ),
  "files of many types": mixed(
    of("multipart/mixed"),
    plain("see files"),
    ["Content-Type: application/json; name=a.json", "", '{"a":1}'],
    ["Content-Type: application/octet-stream; name=b.bin", "", "readable"],
    ["Content-Type: application/octet-stream; name=c.bin", "Content-Transfer-Encoding: base64", "", "AAEC"],
    ["Content-Type: application/pdf; name=d.pdf", "", "readable"],
    html("<p>page</p>", "Content-Disposition: attachment; filename=e.html"),
    ["Content-Type: text/csv; name*=utf-8''%C3%A4.csv", "", "a;b"],
    ["Content-Type: application/octet-stream; name=f.bin", "", ""],
    [
      "Content-Type: application/octet-stream; name*0=g; name*1=h.bin",
      "Content-Disposition: attachment; filename*0*=utf-8''%C3%A4; filename*1=%20.bin",
      "",
      "x",
    ],
  ),
  "an unknown type": lines("From: a@x.example", "Content-Type: words", "", "text"),
  "a type with an odd subtype": lines("From: a@x.example", "Content-Type: text/x y; charset=utf-8", "", "text"),
  "an unknown character set": lines("From: a@x.example", "Content-Type: text/plain; charset=words", "", latin("é")),
  "Latin-1 without a character set": lines("From: a@x.example", "", "caf\xe9"),
  "UTF-8 without a character set": lines("From: a@x.example", "", latin("café")),
  "UTF-16 with a byte order mark": Buffer.concat([
    lines("From: a@x.example", "Content-Type: text/plain; charset=utf-16", "").subarray(0, -2),
    Buffer.from("\r\n"),
    Buffer.from("\ufeffhé", "utf16le"),
  ]),
  "HTML with a charset of its own": lines(
    "From: a@x.example",
    "Content-Type: text/html",
    "",
    '<meta charset="windows-1252"><p>caf\xe9',
  ),
  "HTML that declares UTF-16": lines(
    "From: a@x.example",
    "Content-Type: text/html",
    "",
    `<meta charset="utf-16"><p>${latin("é")}`,
  ),
  "base64 with a list's footer": lines(
    "From: a@x.example",
    "Content-Transfer-Encoding: base64",
    "",
    "aGVsbG8gd29ybGQ=",
    "_____",
    "list footer",
  ),
  "base64 that is plain text": lines(
    "From: a@x.example",
    "Content-Transfer-Encoding: base64",
    "",
    "not encoded at all!",
  ),
  "base64 with plain text within": lines(
    "From: a@x.example",
    "Content-Transfer-Encoding: base64",
    "",
    "aGVsbG8gd29ybGQ=",
    "a footer!",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYSBsb25nIGxpbmUgb2YgdGV4dA==",
  ),
  "base64 with an incomplete group before plain text": lines(
    "From: a@x.example",
    "Content-Transfer-Encoding: base64",
    "",
    "aGVsbG8gd29ybG",
    "a footer!",
  ),
  "quoted-printable": lines(
    "From: a@x.example",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: quoted-printable",
    "",
    "a=C3=A4 b =",
    "c=3d =zz end=  ",
    "next=",
    "",
  ),
  "control characters": lines(
    "From: a@x.example",
    "Subject: a\x07b =?utf-8?q?c=0Ad?=",
    "",
    "one\x00two\x07three\tfour\ffive",
  ),
  "an odd header": lines(
    "From: a@x.example",
    "Not a field",
    "Subject : spaced",
    "X-Folded: one",
    "\ttwo",
    " three",
    "Colon",
    " : on the next line",
    "",
    "body",
  ),
  "a header only": Buffer.from("From: a@x.example\r\nSubject: x"),
  "a body only": Buffer.from("\r\nbody"),
  "line feeds only": Buffer.from("From: a@x.example\nSubject: x\n\nbody\n"),
  nothing: Buffer.from(""),
  "an mbox line": lines("From a@x.example Fri Nov 20 2026", "From: a@x.example", "", "body"),
  "long fields": lines(
    `From: a@x.example`,
    `Subject: ${"s".repeat(9_000)}`,
    `To: ${Array.from({ length: 600 }, (_, n) => `u${n}@x.example`).join(", ")}`,
    "",
    "body",
  ),
  "many languages": mixed(of("multipart/mixed"), [
    "Content-Language: " + Array.from({ length: 25 }, (_, n) => `l${n}`).join(", "),
    "",
    "x",
  ]),
}

const daemon = ["From: MAILER-DAEMON@x.example", "Subject: Undelivered Mail Returned to Sender"]
const report = (...fields: ReadonlyArray<string>) =>
  mixed(
    [...daemon, "Content-Type: multipart/report; report-type=delivery-status; boundary=b"],
    plain("It failed."),
    ["Content-Type: message/delivery-status", "", "Reporting-MTA: dns; x.example", "", ...fields],
    ["Content-Type: message/rfc822", "", "From: us@x.example", "", "original"],
  )
const told = (...text: ReadonlyArray<string>) => lines(...daemon, "", ...text)
const reports: Readonly<Record<string, Buffer>> = {
  "a failure": report(
    "Final-Recipient: rfc822; Ada@X.example",
    "Action: failed",
    "Status: 5.1.1",
    "Diagnostic-Code: smtp; 550 5.1.1 no such user",
  ),
  "two failures and a delay": report(
    "Original-Recipient: rfc822;a+2Bb@x.example",
    "Final-Recipient: rfc822; <c@x.example>",
    "Action: failed (x)",
    "Status: 5.0.0",
    "",
    "Final-Recipient: rfc822; d@x.example",
    "Action: delayed",
    "Status: 4.4.1",
    "",
    "",
    "Final-Recipient: rfc822; e@x.example",
    "Action: failed",
    "Status: 4.2.2 (full)",
  ),
  "a delivery": report("Final-Recipient: rfc822; a@x.example", "Action: delivered", "Status: 2.0.0"),
  "relayed, expanded, and success that calls itself failed": report(
    "Final-Recipient: rfc822; a@x.example",
    "Action: relayed",
    "",
    "Final-Recipient: rfc822; b@x.example",
    "Action: expanded",
    "",
    "Final-Recipient: rfc822; c@x.example",
    "Action: failed",
    "Status: 2.1.5",
  ),
  "a report without recipients": report("Action: failed", "Status: 5.1.1"),
  "a report of a rejected content": report(
    "Final-Recipient: rfc822; a@x.example",
    "Action: failed",
    "Status: 5.7.1",
    "Diagnostic-Code: smtp; 554 5.7.1 spam",
  ),
  "a receipt": mixed(
    [...daemon, "Content-Type: multipart/report; report-type=disposition-notification; boundary=b"],
    plain("<a@x.example>: user unknown, undeliverable"),
  ),
  "a report of abuse": mixed(
    [...daemon, "Content-Type: multipart/report; boundary=b"],
    plain("<a@x.example>: user unknown, undeliverable"),
    ["Content-Type: message/feedback-report", "", "x"],
  ),
  "a report without its status part": mixed(
    [...daemon, "Content-Type: multipart/report; boundary=b"],
    plain("Undeliverable:\r\n<a@x.example>: 550 5.1.1 user unknown"),
  ),
  "a report without its status part, of an automatic reply": mixed(
    [
      "From: a@x.example",
      "Subject: Undeliverable",
      "Auto-Submitted: auto-replied",
      "Content-Type: multipart/report; boundary=b",
    ],
    plain("<a@x.example>: 550 5.1.1 user unknown"),
  ),
  "qmail's text": told(
    "Hi. I wasn't able to deliver. Delivery failed.",
    "",
    "<a@x.example>:",
    "550 5.1.1 no such user",
    "",
    "<b@x.example>:",
    "452 4.2.2 mailbox full",
    "",
    "--- Below this line is a copy of the message.",
    "<c@x.example>: 550",
  ),
  "a text with quoted lines": told(
    "Delivery has failed",
    "> <q@x.example>: 550 x",
    "<a@x.example>",
    "does not exist",
    "Received: from x",
    "<b@x.example>:",
  ),
  "a text of a delay": told("Your message will be retried", "<a@x.example>: 450 4.2.0 later"),
  "a text without a failure": told("Hello <a@x.example>: 550 5.1.1"),
  "a text without addresses": told("Undeliverable", "550 5.1.1 user unknown"),
  "a text of a rejected content": told("Undeliverable", "<a@x.example>: 550 5.1.1 x (in reply to end of DATA command)"),
  "Exim's field": lines(
    "From: x@x.example",
    "X-Failed-Recipients: a@x.example, b@x.example.",
    "Subject: x",
    "",
    "something",
    "",
    "  a@x.example",
    "    550 5.1.1 unknown user",
    "  c@x.example",
    "    no such",
  ),
  "a text by a person": lines(
    "From: ada@x.example",
    "Subject: Undeliverable",
    "",
    "<a@x.example>: 550 5.1.1 user unknown",
  ),
}

const tree = (raw: Buffer, part: Part, depth = 0): ReadonlyArray<string> => [
  `${" ".repeat(depth * 2)}${part.type} ${part.encoding} ${part.disposition ?? "-"} ${JSON.stringify(part.filename)} ${JSON.stringify(part.parameters)} ${part.start}-${part.bodyStart}-${part.end}`,
  ...part.parts.flatMap((one) => tree(raw, one, depth + 1)),
]

const described = async (raw: Buffer): Promise<ReadonlyArray<string>> => {
  const root = index(raw)
  const { structure, headers, search_text, ...shown } = parse(raw)
  const manuscript = ExtractedContent.read(raw, root)
  const reader = await Effect.runPromise(Effect.provide(Effect.service(AttachmentReader), Attachments.layer))
  const files = await Promise.all(
    shown.attachments.slice(0, 10).map(async (_, at) => {
      const file = await Effect.runPromise(reader.read(raw, at))
      const text = await Effect.runPromise(reader.text(raw, at))
      const chunks = await Effect.runPromise(Stream.runCollect(file!.content(1, 4)))
      return `file ${at}: ${file?.size} bytes 1-4 ${Buffer.concat([...chunks]).toString("hex")} ${JSON.stringify(text?.text)} ${text?.whole}`
    }),
  )
  const pictures = await Effect.runPromise(reader.pictures(raw))
  const written = Structure.make(raw, root)
  return [
    ...tree(raw, root),
    ...Object.entries(shown).flatMap(([name, value]) =>
      value === null || JSON.stringify(value).length === 2 ? [] : [`${name}: ${short(JSON.stringify(value))}`],
    ),
    `headers: ${short(JSON.stringify(headers))}`,
    `search: ${short(search_text)}`,
    `envelope: ${short(written.envelope)}`,
    `body: ${Structure.write(written.root, false)}`,
    `structure: ${Structure.write(written.root, true)}`,
    ...(structure === JSON.stringify(written) ? [] : ["another structure"]),
    ...files,
    ...[...pictures].map(([id, url]) => `picture ${id}: ${url.slice(0, 40)}`),
    `sent: ${short(JSON.stringify(manuscript, (name, value: unknown) => (name === "content" ? "…" : value)))}`,
  ]
}

it("messages are read as they were written", async () => {
  const all: Array<string> = []
  for (const [name, raw] of Object.entries(letters)) all.push(`# ${name}`, ...(await described(raw)))
  await inFile("letters", all)
})

it("awkward messages have the structure and the content of their parts", async () => {
  const all: Array<string> = []
  for (const [name, { raw }] of Object.entries({ ...fields, ...bodies, ...boundaries, ...attachments })) {
    const root = index(raw)
    const { root: node, envelope } = Structure.make(raw, root)
    const manuscript = ExtractedContent.read(raw, root)
    all.push(
      `# ${name}`,
      ...tree(raw, root),
      `${short(envelope)}`,
      Structure.write(node, true),
      `sent: ${short(JSON.stringify(manuscript, (key, value: unknown) => (key === "content" ? "…" : value)))}`,
    )
  }
  await inFile("awkward", all)
})

it("reports name the recipients that failed", async () => {
  await inFile(
    "reports",
    Object.entries(reports).flatMap(([name, raw]) => {
      const root = index(raw)
      const { subject, text } = parse(raw)
      return [`# ${name}`, ...BounceReport.read(raw, root, subject, text).map((one) => JSON.stringify(one))]
    }),
  )
})

it("fields, words, encodings and character sets are decoded", async () => {
  const head = (raw: Buffer) => {
    const block = Header.read(raw, 0, raw.length)
    return `${block.bodyStart} ${block.lines} ${block.rows.map((row) => `${row.key}@${row.start}-${row.value}-${row.end} ${JSON.stringify(Header.nameOf(raw, row))}=${JSON.stringify(Header.valueOf(raw, row))}`).join(" | ")}`
  }
  const structured = [
    "",
    "text/plain",
    "TEXT/Plain ; Charset=UTF-8 ",
    'a; b="c;d"; e="f\\"g"; h=i j; k="l" m; =n; o p=q; r',
    "a (comment); b=c (x (y)); d=(z)e",
    'a; b="(not)"; c=\\(x',
    "a; b=c\\;d",
    `a; ${Array.from({ length: 60 }, (_, n) => `p${n}=x`).join("; ")}`,
    `a; b=${"x".repeat(3_000)}; c=d`,
  ]
  const words = [
    "plain",
    "=?utf-8?q?a=20b_c?=",
    "=?UTF-8?B?w6Q=?=",
    "=?utf-8?b?w6Q=?= =?utf-8?b?w7Y=?=",
    "=?utf-8?b?w6Q=?= x =?utf-8?b?w7Y=?=",
    "=?utf-8?b?w6Q=?= =?iso-8859-1?q?=F6?=",
    "=?utf-8?b?ww==?= =?utf-8?b?pA==?=",
    "=?utf-8*en?q?a?=",
    "=?iso-2022-jp?b?GyRCJCIbKEI=?= =?iso-2022-jp?b?GyRCJCQbKEI=?=",
    "=?words?q?a=E4?=",
    "=?utf-8?x?a?=",
    "=?utf-8?q?a?b?=",
    "=?utf-8?q??=",
    "=?utf-8?q?a ?= b",
    "=?utf-8?q?a?==?utf-8?q?b?=",
    "=?iso-8859-1?q?ä=E4?=",
  ]
  const base64 = [
    "",
    "QQ==",
    "QUI=",
    "QUJD",
    "QQ==QQ==",
    "QUI",
    "Q",
    "Q U\r\nJ D",
    "QUJD!!RA==",
    "-_-_",
    "+/+/",
    "=QUJD",
  ]
  const printable = [
    "",
    "a b",
    "a=20",
    "a= \r\nb",
    "a=\nb",
    "a=",
    "a \r\nb",
    "a \t",
    "=41=4a=zZ=4",
    "a=\r",
    "a \nb",
    "=C3=A4",
  ]
  const sets: ReadonlyArray<readonly [string, string]> = [
    ["utf-8", "c3a4"],
    ["", "c3a4"],
    ["", "e4"],
    ["us-ascii", "e4"],
    ["iso-8859-1", "80e4"],
    ["windows-1252", "80e4"],
    ["iso-8859-15", "a4"],
    ["utf-16", "fffee400"],
    ["utf-16", "feff00e4"],
    ["utf-16be", "00e4"],
    ["utf-7", "2b414f512d"],
    ["gb2312", "c4e3"],
    ["gbk", "c4e3"],
    ["big5", "a741"],
    ["euc-jp", "a4a2"],
    ["shift_jis", "82a0"],
    ["iso-2022-jp", "1b2442242224241b2842"],
    ["iso-2022-kr", "1b2429430e213a0f"],
    ["iso-2022-cn", "1b2429410e30210f"],
    ["hz-gb-2312", "7e7b304e7e7d"],
    ["ks_c_5601-1987", "b0a1"],
    ["koi8-r", "c1"],
    ["words", "e4"],
    ["x-user-defined", "e4"],
    ["'utf-8'", "c3a4"],
    ["UTF8", "c3a4"],
    ["utf-8", "ff41"],
  ]
  const decoded = (decode: (body: Uint8Array, into?: Uint8Array) => number, text: string) => {
    const body = Buffer.from(text, "latin1")
    const into = Buffer.alloc(Math.max(body.length, 1))
    const size = decode(body, into)
    const few = Buffer.alloc(2)
    return `${decode(body)} ${into.toString("hex", 0, size)} ${decode(body, few)} ${few.toString("hex")}`
  }
  const headers = [
    "A: b\r\n\r\nx",
    "A: b\r\n c\r\nD: e\r\n",
    "A : b\n\nx",
    "A\r\n : b\r\n\r\n",
    "words\r\nA: b\r\n\r\n",
    ": x\r\nA: b\r\n\r\n",
    "A:\r\n\r\n",
    "\r\nx",
    "\rx",
    "A: b\r\n\r",
    "A: b; c=\r\nd=e\r\n\r\n",
    "A: b;\r\nd=e\r\n\r\n",
    "A: \xe4\r\nB: \xc3\xa4\r\n\r\n",
    "A B: c\r\n\r\n",
    "A: 1\r\nA: 2\r\na: 3\r\n\r\n",
  ]
  const modest = (size: number, count: number) =>
    Header.isModest(
      Buffer.from(`${"A: b\r\n".repeat(count - 1)}B: ${"x".repeat(size - (count - 1) * 6 - 5)}\r\n\r\nbody`),
    )
  const flowed = [
    "a \nb",
    "a\nb",
    "> a \n> b",
    "> a \n>> b",
    "-- \na",
    "a \n-- \nb",
    " a \n b",
    "a \n\nb",
    "a ",
    ">a \n b",
    "> -- \n> x",
  ]
  await inFile("fields", [
    ...headers.map((text) => `header ${JSON.stringify(text)}: ${head(Buffer.from(text, "latin1"))}`),
    ...[
      [262_144, 2_000],
      [262_145, 2_000],
      [20_000, 2_000],
      [20_000, 2_001],
      [20_000, 1_999],
    ].map(([size, count]) => `modest ${size} ${count}: ${modest(size!, count!)}`),
    ...structured.map(
      (text) =>
        `structured ${short(text)}: ${short(JSON.stringify(Parameters.read(text)))} ${short(JSON.stringify(Parameters.withoutRemarks(text)))}`,
    ),
    ...words.map((text) => `words ${text}: ${JSON.stringify(EncodedWords.decode(text))}`),
    ...base64.map((text) => `base64 ${JSON.stringify(text)}: ${decoded(Transfer.base64, text)}`),
    ...printable.map((text) => `quoted-printable ${JSON.stringify(text)}: ${decoded(Transfer.quotedPrintable, text)}`),
    ...sets.map(([name, hex]) => `set ${name} ${hex}: ${JSON.stringify(charset(Buffer.from(hex, "hex"), name))}`),
    ...flowed.flatMap((text) =>
      [false, true].map((delSp) => `flowed ${JSON.stringify(text)} ${delSp}: ${JSON.stringify(unwrap(text, delSp))}`),
    ),
    `head ${JSON.stringify(headOnly(letters["every field of an envelope"]!, index(letters["every field of an envelope"]!).rows))}`,
  ])
})

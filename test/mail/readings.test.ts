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
import { letters } from "./readings/Letters.ts"
import { reports } from "./readings/Reports.ts"

const inFile = (name: string, all: ReadonlyArray<string>) =>
  expect(`${all.join("\n").replaceAll("\r\n", "\n").toWellFormed()}\n`).toMatchFileSnapshot(`readings/${name}.txt`)
const short = (text: string) => (text.length > 400 ? `${text.slice(0, 200)}… (${text.length})` : text)

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

it("messages of every form are read as recorded", async () => {
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

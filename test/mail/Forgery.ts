/** Generates forged messages: signed with any key, then modified, and sent from a host that some domain authorizes. */
import { generateKeyPairSync } from "node:crypto"
import * as fc from "fast-check"
import { dkimSign } from "mailauth/lib/dkim/sign.js"

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 1024 })
const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
const key = publicKey.export({ type: "spki", format: "der" }).toString("base64")

/** The owner of each domain, listed by hand, as the Public Suffix List implies. */
export const owners: Readonly<Record<string, string>> = {
  "bank.example": "bank",
  "mail.bank.example": "bank",
  "evilbank.example": "evilbank",
  example: "nobody",
  "github.io": "github",
  "attacker.github.io": "attacker",
  "bank.co.uk": "ukbank",
  "evil.co.uk": "evil",
  "co.uk": "registry",
}
export const names = Object.keys(owners)

const honestHost = "192.0.2.1"

/**
 * Every domain signs with selector `s` and authorizes the same host; `github.io` and `bank.example` have a DMARC
 * policy.
 */
export const dns = (name: string, type: string): Promise<Array<Array<string>>> => {
  const records: Array<[string, string]> = names.flatMap((one): Array<[string, string]> => [
    [`TXT s._domainkey.${one}`, `v=DKIM1; k=rsa; p=${key}`],
    [`TXT ${one}`, `v=spf1 ip4:${honestHost} -all`],
  ])
  const found = new Map([
    ...records,
    ["TXT _dmarc.github.io", "v=DMARC1; p=reject"] as const,
    ["TXT _dmarc.bank.example", "v=DMARC1; p=reject"] as const,
    ["TXT _dmarc.co.uk", "v=DMARC1; p=reject"] as const,
  ]).get(`${type} ${name.toLowerCase()}`)
  if (found !== undefined) return Promise.resolve([[found]])
  return Promise.reject(Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" }))
}

export const sign = async (
  message: Buffer,
  options: {
    readonly domain: string
    readonly fields: string
    readonly canonicalization: string
    readonly length?: number
  },
): Promise<Buffer> => {
  const signer = {
    signingDomain: options.domain,
    selector: "s",
    privateKey: pem,
    canonicalization: options.canonicalization,
    ...(options.length === undefined ? {} : { maxBodyLength: options.length }),
  }
  const { signatures } = await dkimSign(message, {
    ...signer,
    headerList: options.fields,
    signatureData: [signer],
  })
  return Buffer.concat([Buffer.from(signatures), message])
}

/** Modifications after signing. */
export interface Modification {
  readonly name: string
  readonly apply: (raw: string) => string
}

const top = (field: string) => (raw: string) => `${field}\r\n${raw}`
/** Appended as the last header field. */
const bottom = (field: string) => (raw: string) => raw.replace("\r\n\r\n", `\r\n${field}\r\n\r\n`)
const inserted = (field: string): ReadonlyArray<Modification> => [
  { name: `${field} on top`, apply: top(field) },
  { name: `${field} below`, apply: bottom(field) },
]

const fields = [
  "From: CEO <ceo@bank.example>",
  "from : ceo@bank.example",
  "From\r\n : ceo@bank.example",
  "\xa0From: ceo@bank.example",
  "FROM: a@evil.co.uk",
  "Sender: boss@bank.example",
  "Reply-To: a@evil.co.uk",
  "Subject: urgent",
  "SUBJECT\t: urgent",
  "Subject\r\n\t: urgent",
  "\xe3\x80\x80Subject: urgent",
  "To: you@mail.localhost",
  "Date: Mon, 1 Jan 2001 00:00:00 +0000",
  "Message-ID: <other@bank.example>",
  "MIME-Version: 1.0",
  "Content-Type: text/html",
  "Content-Type: text/plain; charset=utf-7",
  "Content-Type: multipart/mixed; boundary=evil",
  "Content-Type: multipart/alternative; boundary=good",
  "Content-Transfer-Encoding: base64",
  "Content-Transfer-Encoding: quoted-printable",
  "Content-Disposition: attachment; filename=x",
  "X-Other: y",
]

export const modifications: ReadonlyArray<Modification> = [
  { name: "nothing", apply: (raw) => raw },
  ...fields.flatMap(inserted),
  { name: "another subject", apply: (raw) => raw.replace(/^Subject: .*$/m, "Subject: urgent") },
  { name: "no subject", apply: (raw) => raw.replace(/^Subject: .*\r\n/m, "") },
  { name: "more body", apply: (raw) => `${raw}pay me\r\n` },
  { name: "another body", apply: (raw) => raw.replace("hello", "HELLO") },
  { name: "empty lines", apply: (raw) => `${raw}\r\n\r\n` },
  { name: "spaces", apply: (raw) => raw.replace("hello", "hello  ") },
  { name: "another author", apply: (raw) => raw.replace(/^From: .*$/m, "From: ceo@bank.example") },
  { name: "an author more", apply: (raw) => raw.replace(/^From: (.*)$/m, "From: $1, ceo@bank.example") },
  { name: "a name like an address", apply: (raw) => raw.replace(/^From: .*<(.*)>.*$/m, "From: ceo@bank.example <$1>") },
  { name: "a continued field", apply: (raw) => raw.replace("\r\n\r\n", "\r\n more\r\n\r\n") },
  { name: "a boundary of the body's", apply: (raw) => raw.replace("boundary=good", "boundary=evil") },
]

/** Spellings of an author; `@@` stands for the address. */
const spellings = [
  "Ada <@@>",
  "@@",
  '"ceo@bank.example" <@@>',
  "ceo@bank.example <@@>",
  "(ceo@bank.example) @@",
  "@@ (ceo@bank.example)",
  "Staff: @@;",
  "@@, ceo@bank.example",
  "=?utf-8?q?ceo=40bank.example?= <@@>",
  "<@relay.example:@@>",
  "@@@bank.example",
]

const bodies = [
  { head: "", body: "hello\r\nworld\r\n" },
  { head: "Content-Type: text/plain; charset=utf-8\r\n", body: "hello\r\n<b>world</b> =41\r\n" },
  {
    head: "MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=good\r\n",
    body: "--good\r\n\r\nhello\r\n--evil\r\n\r\nquoted\r\n--good\r\nContent-Type: text/html\r\n\r\n<p>hello\r\n--good--\r\n",
  },
]

const forged = fc.record({
  author: fc.constantFrom(...names),
  /** Whether the signer and the sending host are the author's own. */
  isOwn: fc.boolean(),
  spelling: fc.oneof({ weight: 2, arbitrary: fc.constant("Ada <@@>") }, fc.constantFrom(...spellings)),
  part: fc.constantFrom(...bodies),
  signer: fc.option(fc.constantFrom(...names), { nil: undefined }),
  covered: fc.constantFrom(
    "From",
    "From:Subject",
    "From:To:Subject:Date:Reply-To:Sender:Content-Type:Content-Transfer-Encoding:MIME-Version",
    "From:Subject:Reply-To:Sender:Content-Disposition",
    "Subject",
  ),
  canonicalization: fc.constantFrom("relaxed/relaxed", "simple/simple", "relaxed/simple"),
  length: fc.option(fc.constantFrom(0, 5, 10_000), { nil: undefined }),
  tricks: fc.array(fc.constantFrom(...modifications), { maxLength: 2 }),
  sender: fc.constantFrom(...names, ""),
  ip: fc.constantFrom(honestHost, "203.0.113.9", "203.0.113.9"),
})

/** Includes messages that are legitimate except for one thing, since others would prove nothing. */
export const forgery = forged.map((one) =>
  one.isOwn ? { ...one, signer: one.author, sender: one.sender === "" ? "" : one.author } : one,
)

export const isHonestHost = (ip: string) => ip === honestHost

export type Forged = typeof forgery extends fc.Arbitrary<infer A> ? A : never

/** The message as written, and as sent. */
export const forgedMessage = async (one: Forged) => {
  const before = Buffer.from(
    `From: ${one.spelling.replace("@@", `a@${one.author}`)}\r\nTo: bob@mail.localhost\r\nSubject: invoice\r\n` +
      `Date: Fri, 20 Nov 2026 12:00:00 +0000\r\n${one.part.head}\r\n${one.part.body}`,
    "latin1",
  )
  const signed =
    one.signer === undefined
      ? before
      : await sign(before, {
          domain: one.signer,
          fields: one.covered,
          canonicalization: one.canonicalization,
          ...(one.length === undefined ? {} : { length: one.length }),
        })
  const sent = one.tricks.reduce((raw, { apply }) => apply(raw), signed.toString("latin1"))
  return { before, sent: Buffer.from(sent, "latin1") }
}

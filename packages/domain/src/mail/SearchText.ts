/**
 * The text that a message is found by: its sender, its recipients, its subject, the names of its attachments and its
 * bodies, folded, so that neither case nor accents nor the breaking of lines keep a word from being found. What writes
 * messages folds what it stores, what searches folds what is looked for.
 */
import type { Address, Attachment } from "./Message.ts"

/** Bytes of UTF-8 at most (mail.md "Parsing, storing, searching"). */
export const limit = 1024 * 1024

/** Between the parts, which can so be told apart; no folded text has it. */
export const separator = "\x1e"
/** The parts in their order, counted from 1. */
export const parts = { from: 1, to: 2, subject: 3 } as const

const letters: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  đ: "d",
  ð: "d",
  ł: "l",
  ı: "i",
  þ: "th",
  ς: "σ",
}

// oxlint-disable-next-line no-control-regex -- whether there is anything to fold but case and white space
const ascii = /^[\x00-\x7f]*$/
/** Accents of Latin, Greek and Cyrillic, and the vowel marks of Hebrew and Arabic. */
const marks = /[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]/g

/** Soft hyphens, zero-width characters and marks of direction, which nobody sees within a word. */
const unseen =
  /(?:[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\ufe00-\ufe0f]|[\u{e0000}-\u{e007f}])+/gu

/** Runs of what separates words, control characters among it; not a lone space, which stays as it is. */
const gaps =
  // oxlint-disable-next-line no-control-regex -- control characters separate words, like white space
  /(?:[^\S ]|[\x00-\x1f\x7f])[\s\x00-\x1f\x7f]*| [\s\x00-\x1f\x7f]+/g

/**
 * Lower case without accents and unseen characters, each run of white space one space. Compatibility forms are resolved
 * first, since those of capital letters (𝗕, Ⓑ) have no lower case of their own.
 */
export const fold = (text: string): string => {
  const plain = ascii.test(text)
    ? text.toLowerCase()
    : text
        .normalize("NFKD")
        .toLowerCase()
        .replace(marks, "")
        .replace(unseen, "")
        .normalize("NFC")
        .replace(/[ßæœøđðłıþς]/g, (letter) => letters[letter]!)
  return plain.replace(gaps, " ").trim()
}

interface Searched {
  readonly from: Address | null
  readonly to: ReadonlyArray<Address>
  readonly cc: ReadonlyArray<Address>
  readonly bcc: ReadonlyArray<Address>
  readonly subject: string
  readonly attachments: ReadonlyArray<Pick<Attachment, "filename">>
}

const people = (addresses: ReadonlyArray<Address>) =>
  addresses.map(({ address, name }) => (name === null ? address : `${name} ${address}`)).join(" ")

/** `bodies` in the order in which they matter: past the limit they are cut. */
export const searchText = (message: Searched, bodies: ReadonlyArray<string>): string => {
  const { from, to, cc, bcc, subject, attachments } = message
  const fields = [
    people(from === null ? [] : [from]),
    people([...to, ...cc, ...bcc]),
    subject,
    attachments.map(({ filename }) => filename ?? "").join(" "),
    bodies.join("\n").slice(0, limit),
  ]
  return truncate(fields.map(fold).join(separator).toWellFormed(), limit)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** At most so many bytes of UTF-8, not cutting a character in half. */
const truncate = (text: string, bytes: number): string => {
  if (text.length * 3 <= bytes) return text
  const encoded = encoder.encode(text)
  if (encoded.length <= bytes) return text
  let end = bytes
  while (end > 0 && (encoded[end]! & 0xc0) === 0x80) end--
  return decoder.decode(encoded.subarray(0, end))
}

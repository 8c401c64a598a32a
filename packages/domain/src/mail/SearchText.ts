/**
 * The text by which a message is found: sender, recipients, subject, names of attachments, and bodies. The text is
 * folded so that case, accents and line breaks do not affect a search. Stored texts and search terms are folded in the
 * same way.
 */
import type { Address, Attachment } from "./Message.ts"

/** Maximum size in bytes of UTF-8 (mail.md "Parsing, storing, searching"). */
const limit = 1024 * 1024

/** Separates the parts of the text; folded text never contains it. */
export const separator = "\x1e"
/** Numbers of the first parts, counted from 1. */
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
/** Accents of Latin, Greek and Cyrillic, and vowel marks of Hebrew and Arabic. */
const marks = /[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]/g

/** Soft hyphens, zero-width characters and direction marks, which are invisible within a word. */
const unseen =
  /(?:[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\ufe00-\ufe0f]|[\u{e0000}-\u{e007f}])+/gu

/** Sequences of separators, including control characters; a single space is not matched. */
const gaps =
  // oxlint-disable-next-line no-control-regex -- control characters separate words, like white space
  /(?:[^\S ]|[\x00-\x1f\x7f])[\s\x00-\x1f\x7f]*| [\s\x00-\x1f\x7f]+/g

/**
 * Folds a text: lower case, no accents, no invisible characters, white space collapsed. Compatibility forms are
 * resolved first, since the forms of capital letters (𝗕, Ⓑ) have no lower case.
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

/** Returns the text of a message. `bodies` are ordered by importance; text beyond the limit is cut. */
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

/** Truncates the text to a number of bytes without splitting a character. */
const truncate = (text: string, bytes: number): string => {
  if (text.length * 3 <= bytes) return text
  const encoded = encoder.encode(text)
  if (encoded.length <= bytes) return text
  let end = bytes
  while (end > 0 && (encoded[end]! & 0xc0) === 0x80) end--
  return decoder.decode(encoded.subarray(0, end))
}

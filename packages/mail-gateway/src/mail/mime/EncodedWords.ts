/**
 * Decodes encoded words in header fields (RFC 2047). Adjacent words of the same character set are joined before
 * decoding, since senders split characters, and raw 8-bit characters within a word are decoded too. Linear time.
 */
import { charset } from "./Charset.ts"
import * as Transfer from "./Transfer.ts"

const encoded = /=\?([^?*\s]{1,40})(?:\*[^?\s]{0,40})?\?([bq])\?([^?]*)\?=/gi

/** Returns the original bytes of the characters: a header that is not UTF-8 was read byte by byte. */
const raw = (text: string): Buffer => Buffer.from(text, /[^\p{ASCII}\u0080-\u00ff]/u.test(text) ? "utf8" : "latin1")

const bytesOf = (encoding: string, charsetName: string, text: string): Buffer => {
  const source = /^utf-?8$/i.test(charsetName) ? Buffer.from(text, "utf8") : raw(text)
  const into = Buffer.alloc(source.length)
  if (encoding === "b" || encoding === "B") return into.subarray(0, Transfer.base64(source, into))
  // In encoded words `_` is a space, and trailing white space is significant (section 4.2).
  for (let at = 0; at < source.length; at++) if (source[at] === 95) source[at] = 32
  const withEnd = Buffer.concat([source, Buffer.from(".")])
  const target = Buffer.alloc(withEnd.length)
  return target.subarray(0, Transfer.quotedPrintable(withEnd, target) - 1)
}

/**
 * Joins words of an ISO-2022 set. Each word starts and ends in ASCII; the redundant switch back before the next word is
 * removed, since decoders reject it as an attempt to hide text.
 */
const joined = (pieces: ReadonlyArray<Buffer>): Buffer => {
  const returns = (piece: Buffer) => piece.length >= 3 && piece.toString("latin1", piece.length - 3) === "\x1b(B"
  return Buffer.concat(
    pieces.map((piece, at) => (returns(piece) && pieces[at + 1]?.[0] === 0x1b ? piece.subarray(0, -3) : piece)),
  )
}

/** Decodes a single word. */
export const word = (charsetName: string, encoding: string, text: string): string =>
  charset(bytesOf(encoding, charsetName, text), charsetName)

export const decode = (value: string): string => {
  if (!value.includes("=?")) return value
  let out = ""
  let at = 0
  let pending: { charset: string; pieces: Array<Buffer> } | undefined
  const flush = () => {
    if (pending !== undefined) out += charset(joined(pending.pieces), pending.charset)
    pending = undefined
  }
  for (const match of value.matchAll(encoded)) {
    const [whole, name, encoding, text] = match
    const between = value.slice(at, match.index)
    const bytes = bytesOf(encoding!, name!, text!)
    const key = name!.toLowerCase()
    if (pending !== undefined && between.trim() === "") {
      // White space between encoded words is not shown.
      if (pending.charset === key) pending.pieces.push(bytes)
      else {
        flush()
        pending = { charset: key, pieces: [bytes] }
      }
    } else {
      flush()
      out += between
      pending = { charset: key, pieces: [bytes] }
    }
    at = match.index + whole.length
  }
  flush()
  return out + value.slice(at)
}

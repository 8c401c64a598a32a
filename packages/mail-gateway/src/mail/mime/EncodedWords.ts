/**
 * Encoded words of header fields (RFC 2047): neighbours of one character set are joined before they are decoded, since
 * senders cut characters in half, and raw 8-bit characters inside a word are read as they were meant. Linear.
 */
import { charset } from "./Charset.ts"
import * as Transfer from "./Transfer.ts"

const encoded = /=\?([^?*\s]{1,40})(?:\*[^?\s]{0,40})?\?([bq])\?([^?]*)\?=/gi

/** The bytes that the characters stand for: a header that is not UTF-8 was read byte for byte. */
const raw = (text: string): Buffer => Buffer.from(text, /[^\p{ASCII}\u0080-\u00ff]/u.test(text) ? "utf8" : "latin1")

const bytesOf = (encoding: string, charsetName: string, text: string): Buffer => {
  const source = /^utf-?8$/i.test(charsetName) ? Buffer.from(text, "utf8") : raw(text)
  const into = Buffer.alloc(source.length)
  if (encoding === "b" || encoding === "B") return into.subarray(0, Transfer.base64(source, into))
  // In a word `_` is a space, and nothing is at the end of a line (section 4.2).
  for (let at = 0; at < source.length; at++) if (source[at] === 95) source[at] = 32
  const held = Buffer.concat([source, Buffer.from(".")])
  const target = Buffer.alloc(held.length)
  return target.subarray(0, Transfer.quotedPrintable(held, target) - 1)
}

/**
 * Words of a set that is switched by escape sequences begin and end in ASCII; joined, the way back stands right before the
 * next switch, which decoders take for an attempt to hide something.
 */
const joined = (pieces: ReadonlyArray<Buffer>): Buffer => {
  const returns = (piece: Buffer) => piece.length >= 3 && piece.toString("latin1", piece.length - 3) === "\x1b(B"
  return Buffer.concat(
    pieces.map((piece, at) => (returns(piece) && pieces[at + 1]?.[0] === 0x1b ? piece.subarray(0, -3) : piece)),
  )
}

/** One word on its own. */
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
      // White space between two words is not shown.
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

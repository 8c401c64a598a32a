/** A part's content: transfer encoding and character set undone. Anything undecodable is given as it stands. */
import { charset } from "./Charset.ts"
import { footerAt } from "./Footer.ts"
import type { Part } from "./Part.ts"
import * as Transfer from "./Transfer.ts"
import * as EncodedWords from "./EncodedWords.ts"

const decoders: Readonly<Record<string, (body: Uint8Array, into?: Uint8Array, before?: Transfer.Held) => number>> = {
  base64: Transfer.base64,
  "quoted-printable": Transfer.quotedPrintable,
}

const decoderOf = (part: Part) => (Object.hasOwn(decoders, part.encoding) ? decoders[part.encoding] : undefined)

/** The bytes of a leaf part, at most `limit` of them. */
export const bytes = (raw: Buffer, part: Part, limit = Infinity): Buffer => {
  const body = raw.subarray(part.bodyStart, part.end)
  const decoder = decoderOf(part)
  if (decoder === undefined) return body.subarray(0, limit)
  // Neither encoding makes more bytes than it takes.
  const into = Buffer.allocUnsafeSlow(Math.min(limit, body.length))
  return into.subarray(0, decoder(body, into))
}

/** Bytes of a body that are decoded at once: less than a millisecond, and a few where the decoder is not compiled yet. */
const pieceBytes = 64 * 1024

/** Where a piece that begins at `from` may end: behind a line break, since quoted-printable is told line by line. */
const pieceEnd = (raw: Buffer, from: number, end: number): number => {
  if (end - from <= pieceBytes) return end
  const lineBreak = raw.lastIndexOf(10, from + pieceBytes)
  return lineBreak > from ? lineBreak + 1 : from + pieceBytes
}

/** What {@link bytes} gives, in pieces, each made when it is asked for. */
export const pieces = function* (raw: Buffer, part: Part): Generator<Uint8Array> {
  const decoder = decoderOf(part)
  const held: Transfer.Held = { bits: 0, held: 0 }
  for (let at = part.bodyStart; at < part.end;) {
    const end = pieceEnd(raw, at, part.end)
    const body = raw.subarray(at, end)
    at = end
    if (decoder === undefined) yield body
    else {
      const into = Buffer.allocUnsafeSlow(body.length)
      yield into.subarray(0, decoder(body, into, held))
    }
  }
}

/** How many bytes {@link bytes} would give, without making them. */
export const size = (raw: Buffer, part: Part): number => {
  const body = raw.subarray(part.bodyStart, part.end)
  return decoderOf(part)?.(body) ?? body.length
}

/** Neither NUL nor half a surrogate pair, which no store takes. */
export const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

/**
 * {@link clean}, in one line: an encoded word may hold anything, also a line break and what moves the cursor of a terminal,
 * which would be taken for more than a subject or a name.
 */
// oxlint-disable-next-line no-control-regex -- they are what is replaced
export const line = (text: string): string => clean(text).replace(/[\u0001-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")

/** RFC 2047 encoded words, then {@link line}. */
export const words = (value: string): string => line(EncodedWords.decode(value)).trim()

/** What a text has no use for: it moves the cursor of a terminal that shows it, and each is six characters of JSON. */
// oxlint-disable-next-line no-control-regex -- these are what goes; tabs, line breaks and form feeds stay
const controls = /[\x01-\x08\x0b\x0e-\x1f\x7f]+/g

/** Bytes at the beginning of an HTML document in which its own charset must stand (WHATWG HTML section 4.2.5.4). */
const sniffed = 1024

/**
 * Returns the charset that an HTML document names in a `meta` element, or an empty string. A document that can be read so
 * far is not in UTF-16.
 */
const metaCharset = (content: Buffer): string => {
  for (const [element] of content.toString("latin1", 0, sniffed).matchAll(/<meta[\s/][^>]*/gi)) {
    const name = /[\s/;"']charset\s*=\s*["']?\s*([^\s"'/;>]{1,40})/i.exec(element)?.[1]
    if (name !== undefined) return /^utf-?16/i.test(name) ? "utf-8" : name
  }
  return ""
}

/** What stands in the part: of base64 in two pieces where plain lines are behind it. */
const written = (raw: Buffer, part: Part, limit: number): string => {
  const named = part.parameters["charset"]?.trim() ?? ""
  const decoded = (content: Buffer) =>
    charset(content, named === "" && part.type === "text/html" ? metaCharset(content) : named)
  if (part.encoding !== "base64") return decoded(bytes(raw, part, limit))
  const footer = part.bodyStart + footerAt(raw.subarray(part.bodyStart, part.end))
  const text = decoded(bytes(raw, { ...part, end: footer }, limit))
  if (footer === part.end) return text
  return `${text.replace(/\r?\n$/, "")}\n${charset(raw.subarray(footer, part.end), "")}`
}

/** The text of a leaf part, of at most `limit` bytes of it, without control characters. */
export const text = (raw: Buffer, part: Part, limit: number): string =>
  clean(written(raw, part, limit))
    .replace(controls, "")
    .replaceAll("\r\n", "\n")

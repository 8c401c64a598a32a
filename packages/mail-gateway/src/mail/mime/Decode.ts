/** Decodes the transfer encoding and the character set of a part. Undecodable content is returned unchanged. */
import { charset } from "./Charset.ts"
import type { Part } from "./Part.ts"
import * as Transfer from "./Transfer.ts"
import * as EncodedWords from "./EncodedWords.ts"

const decoders: Readonly<Record<string, (body: Uint8Array, into?: Uint8Array, before?: Transfer.Held) => number>> = {
  base64: Transfer.base64,
  "quoted-printable": Transfer.quotedPrintable,
}

const decoderOf = (part: Part) => (Object.hasOwn(decoders, part.encoding) ? decoders[part.encoding] : undefined)

/** Returns the decoded bytes of a leaf part, at most `limit`. */
export const bytes = (raw: Buffer, part: Part, limit = Infinity): Buffer => {
  const body = raw.subarray(part.bodyStart, part.end)
  const decoder = decoderOf(part)
  if (decoder === undefined) return body.subarray(0, limit)
  // Decoding never lengthens the content.
  const into = Buffer.allocUnsafeSlow(Math.min(limit, body.length))
  return into.subarray(0, decoder(body, into))
}

/** The bytes decoded per piece: less than a millisecond of work, or a few before the decoder is compiled. */
const pieceBytes = 64 * 1024

/**
 * Returns the end of the piece that starts at `from`: after a line break, since quoted-printable is decoded by line.
 */
const pieceEnd = (raw: Buffer, from: number, end: number): number => {
  if (end - from <= pieceBytes) return end
  const lineBreak = raw.lastIndexOf(10, from + pieceBytes)
  return lineBreak > from ? lineBreak + 1 : from + pieceBytes
}

/** Yields the content of {@link bytes} in pieces, lazily. */
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

/** Returns the length of {@link bytes} without decoding into memory. */
export const size = (raw: Buffer, part: Part): number => {
  const body = raw.subarray(part.bodyStart, part.end)
  return decoderOf(part)?.(body) ?? body.length
}

/** Removes NUL and lone surrogates, which PostgreSQL cannot store. */
export const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

/**
 * Returns {@link clean} text in one line. An encoded word may contain line breaks and control characters, which would
 * be mistaken for more than a subject or a name.
 */
// oxlint-disable-next-line no-control-regex -- control characters are replaced
export const line = (text: string): string => clean(text).replace(/[\u0001-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")

/** Decodes RFC 2047 encoded words into a {@link line}. */
export const words = (value: string): string => line(EncodedWords.decode(value)).trim()

/** Control characters have no use in text, affect terminals, and take six characters each in JSON. */
// oxlint-disable-next-line no-control-regex -- control characters are removed
const controls = /[\x01-\x08\x0b\x0e-\x1f\x7f]+/g

/** The first bytes of an HTML document, in which its charset must be declared (WHATWG HTML section 4.2.5.4). */
const sniffed = 1024

/**
 * Returns the charset that a `meta` element of an HTML document declares, or an empty string. A document that is
 * readable up to there is not UTF-16.
 */
const metaCharset = (content: Buffer): string => {
  for (const [element] of content.toString("latin1", 0, sniffed).matchAll(/<meta[\s/][^>]*/gi)) {
    const name = /[\s/;"']charset\s*=\s*["']?\s*([^\s"'/;>]{1,40})/i.exec(element)?.[1]
    if (name !== undefined) return /^utf-?16/i.test(name) ? "utf-8" : name
  }
  return ""
}

/** The bytes inspected at the end of a body. */
const tailBytes = 8 * 1024

const isEncoded = (line: string) => line.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(line)

/** Returns whether a line cannot be Base64: it has inner white space, an invalid character, or is a rule. */
const isPlain = (line: string) => /[^A-Za-z0-9+/=_-]/.test(line) || /^[_=-]+$/.test(line)

/** Base64 lines are long; a shorter line may be an ordinary word. */
const isSurelyEncoded = (line: string) => line.length >= 40 && isEncoded(line)

/**
 * Returns the offset at which the plain lines after Base64 content start, or the length of the body without such lines.
 * Some mailing lists append them to every message whatever its encoding, and a decoder would turn them into garbage.
 * Only the end of a body is inspected, and only after complete Base64 groups; other invalid characters are skipped, as
 * RFC 2045 section 6.8 requires.
 */
const footerAt = (body: Buffer): number => {
  const from = Math.max(0, body.length - tailBytes)
  // The first line of the tail may be incomplete.
  const start = from === 0 ? 0 : body.indexOf(10, from) + 1
  if (start === 0 && from > 0) return body.length
  let at = start
  let isAfterWhole = false
  let begin: number | undefined
  for (const whole of body.toString("latin1", start).split("\n")) {
    const line = whole.trim()
    if (begin === undefined) {
      if (isPlain(line)) {
        if (!isAfterWhole) return body.length
        begin = at
      } else if (line !== "") isAfterWhole = isEncoded(line)
    } else if (isSurelyEncoded(line)) return body.length
    at += whole.length + 1
  }
  return begin ?? body.length
}

/** Returns the text of a part. Plain lines after Base64 content are appended. */
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

/** Returns the text of a leaf part without control characters, decoding at most `limit` bytes. */
export const text = (raw: Buffer, part: Part, limit: number): string =>
  clean(written(raw, part, limit))
    .replace(controls, "")
    .replaceAll("\r\n", "\n")

/** A part's content: transfer encoding and character set undone. Anything undecodable is given as it stands. */
import { charset } from "./Charset.ts"
import type { Part } from "./Part.ts"
import * as Transfer from "./Transfer.ts"
import * as Words from "./Words.ts"

const decoders: Readonly<Record<string, typeof Transfer.base64>> = {
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

/** How many bytes {@link bytes} would give, without making them. */
export const size = (raw: Buffer, part: Part): number => {
  const body = raw.subarray(part.bodyStart, part.end)
  return decoderOf(part)?.(body) ?? body.length
}

/** Neither NUL nor half a surrogate pair, which no store takes. */
export const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

/** RFC 2047 encoded words, then {@link clean}. */
export const words = (value: string): string => clean(Words.decode(value))

/** The text of a leaf part, of at most `limit` bytes of it. */
export const text = (raw: Buffer, part: Part, limit: number): string =>
  clean(charset(bytes(raw, part, limit), part.parameters["charset"] ?? "")).replaceAll("\r\n", "\n")

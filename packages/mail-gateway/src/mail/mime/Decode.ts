/** A part's content: transfer encoding and character set undone. Anything undecodable is given as it stands. */
import libmime from "libmime"
import charsets from "libmime/lib/charset.js"
import libqp from "libqp"
import type { Part } from "./Part.ts"

/** The bytes of a leaf part. */
export const bytes = (raw: Buffer, part: Part): Uint8Array => {
  const body = raw.subarray(part.bodyStart, part.end)
  switch (part.encoding) {
    case "base64":
      return Buffer.from(body.toString("latin1"), "base64")
    case "quoted-printable":
      return libqp.decode(body.toString("latin1"))
    default:
      return body
  }
}

/** Neither NUL nor half a surrogate pair, which no store takes. */
export const clean = (text: string): string => text.replaceAll("\0", "").toWellFormed()

/** RFC 2047 encoded words, then {@link clean}. */
export const words = (value: string): string => {
  try {
    return clean(libmime.decodeWords(value))
  } catch {
    return clean(value)
  }
}

/** The text of a leaf part, at most `limit` bytes of it. */
export const text = (raw: Buffer, part: Part, limit: number): string => {
  const content = Buffer.from(bytes(raw, part).subarray(0, limit))
  const charset = part.parameters["charset"] ?? "utf-8"
  try {
    return clean(charsets.decode(content, charset)).replaceAll("\r\n", "\n")
  } catch {
    return clean(content.toString("latin1")).replaceAll("\r\n", "\n")
  }
}

/** Decodes the transfer encoding of a part chunk by chunk, for BINARY (RFC 3516). */
import * as Transfer from "../../mime/Transfer.ts"

export const encodings = new Set(["7bit", "8bit", "binary", "base64", "quoted-printable"])

interface Decoder {
  readonly push: (bytes: Buffer) => Buffer
  readonly end: () => Buffer
}

const decoded = (decode: typeof Transfer.base64, bytes: Buffer): Buffer => {
  const into = Buffer.allocUnsafe(bytes.length)
  return into.subarray(0, decode(bytes, into))
}

/** Decodes up to the last position at which the encoding can be split; the rest is decoded with the next chunk. */
const cutting = (
  decode: typeof Transfer.base64,
  cut: (bytes: Buffer) => number,
  clean: (bytes: Buffer) => Buffer,
): Decoder => {
  let left: Buffer = Buffer.alloc(0)
  return {
    push: (bytes) => {
      const all = Buffer.concat([left, clean(bytes)])
      const at = cut(all)
      left = Buffer.from(all.subarray(at))
      return decoded(decode, all.subarray(0, at))
    },
    end: () => decoded(decode, left),
  }
}

const same = (bytes: Buffer) => bytes

export const make = (encoding: string): Decoder => {
  switch (encoding) {
    case "base64":
      return cutting(
        Transfer.base64,
        (bytes) => bytes.length - (bytes.length % 4),
        (bytes) => Buffer.from(bytes.toString("latin1").replace(/[^A-Za-z0-9+/=_-]+/g, ""), "latin1"),
      )
    case "quoted-printable":
      // Complete lines are decoded; an overlong line is split where no escape sequence has begun.
      return cutting(
        Transfer.quotedPrintable,
        (bytes) => {
          const line = bytes.lastIndexOf(10) + 1
          return line > 0 || bytes.length < 64 * 1024 ? line : bytes.lastIndexOf(61)
        },
        same,
      )
    default:
      return { push: same, end: () => Buffer.alloc(0) }
  }
}

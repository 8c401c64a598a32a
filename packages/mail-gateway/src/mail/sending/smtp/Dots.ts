/**
 * The content of DATA as it goes over the wire (RFC 5321 section 4.5.2), in pieces: a dot more where a line begins with
 * one, and the line with a dot that ends it all.
 */
const LF = 10
const DOT = 46
const piece = 64 * 1024

export function* stuffed(parts: ReadonlyArray<Uint8Array>): Generator<Buffer> {
  let atStart = true
  let last: number | undefined
  for (const part of parts) {
    for (let from = 0; from < part.length; from += piece) {
      const bytes = Buffer.from(part.buffer, part.byteOffset + from, Math.min(piece, part.length - from))
      const pieces: Array<Buffer> = []
      let start = 0
      for (let at = bytes.indexOf(DOT); at >= 0; at = bytes.indexOf(DOT, at + 1)) {
        if (at === 0 ? !atStart : bytes[at - 1] !== LF) continue
        // Up to the dot and with it; the next piece begins with it once more.
        pieces.push(bytes.subarray(start, at + 1))
        start = at
      }
      pieces.push(bytes.subarray(start))
      yield pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
      last = bytes[bytes.length - 1]
      atStart = last === LF
    }
  }
  yield Buffer.from(last === undefined || last === LF ? ".\r\n" : "\r\n.\r\n")
}

/**
 * Encodes the content of DATA (RFC 5321 section 4.5.2): doubles a dot at the start of a line, and ends with the line of
 * a single dot.
 */
const LF = 10
const DOT = 46
const piece = 64 * 1024

/** Yields pieces of about this size. Smaller ones are merged, since each piece is a system call. */
export function* stuffed(parts: ReadonlyArray<Uint8Array>): Generator<Buffer> {
  let pieces: Array<Buffer> = []
  let size = 0
  let atStart = true
  let last: number | undefined
  const put = (bytes: Buffer) => {
    pieces.push(bytes)
    size += bytes.length
  }
  for (const part of parts) {
    for (let from = 0; from < part.length; from += piece) {
      const bytes = Buffer.from(part.buffer, part.byteOffset + from, Math.min(piece, part.length - from))
      let start = 0
      for (let at = bytes.indexOf(DOT); at >= 0; at = bytes.indexOf(DOT, at + 1)) {
        if (at === 0 ? !atStart : bytes[at - 1] !== LF) continue
        // Includes the dot; the next piece starts with the same dot, which doubles it.
        put(bytes.subarray(start, at + 1))
        start = at
      }
      put(bytes.subarray(start))
      last = bytes[bytes.length - 1]
      atStart = last === LF
      if (size < piece) continue
      yield Buffer.concat(pieces)
      pieces = []
      size = 0
    }
  }
  yield Buffer.concat([...pieces, Buffer.from(last === undefined || last === LF ? ".\r\n" : "\r\n.\r\n")])
}

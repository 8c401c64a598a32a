/** Slices text by bytes of UTF-8. */
const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const encode = (text: string): Uint8Array => encoder.encode(text)

interface TextSlice {
  readonly text: string
  /** The offset of the next byte, at which to continue. */
  readonly end: number
  /** The length in bytes. */
  readonly size: number
}

/** Returns at most `limit` bytes from `from` on, cut between characters; at least one character, unless the limit is 0. */
export const slice = (bytes: Uint8Array, from: number, limit: number): TextSlice => {
  const isInner = (at: number) => at > 0 && at < bytes.length && (bytes[at]! & 0xc0) === 0x80
  let begin = Math.min(from, bytes.length)
  while (isInner(begin)) begin--
  let end = Math.min(begin + limit, bytes.length)
  while (isInner(end)) end--
  // A limit below one character would never make progress.
  if (end <= begin && begin < bytes.length && limit > 0) {
    end = begin + 1
    while (isInner(end)) end++
  }
  return { text: decoder.decode(bytes.subarray(begin, end)), end, size: end - begin }
}

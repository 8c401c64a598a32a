/**
 * Decodes transfer encodings (RFC 2045 section 6) in one pass. The decoder stops when the target is full, or only
 * counts if there is no target, so sizes cost no memory and always match the content.
 */

/** The value of each Base64 character; -1 is skipped, -2 is padding. */
const sextets = new Int8Array(256).fill(-1)
for (const [at, char] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  sextets[char.charCodeAt(0)] = at
}
// The URL-safe alphabet, which some senders use.
sextets[45] = 62
sextets[95] = 63
sextets[61] = -2

/** The state of the Base64 decoder between two pieces of a body. */
export interface Held {
  bits: number
  held: number
}

/**
 * Skips invalid characters. Padding ends a run, after which another one may follow, as in concatenated encoded pieces.
 */
export const base64 = (body: Uint8Array, into?: Uint8Array, before: Held = { bits: 0, held: 0 }): number => {
  const room = into?.length ?? Infinity
  let { bits, held } = before
  let size = 0
  for (let at = 0; at < body.length && size < room; at++) {
    const value = sextets[body[at]!]!
    if (value >= 0) {
      held = ((held << 6) | value) & 0xffff
      bits += 6
      if (bits >= 8) {
        bits -= 8
        if (into !== undefined) into[size] = (held >> bits) & 0xff
        size++
      }
    } else if (value === -2) bits = 0
  }
  before.bits = bits
  before.held = held
  return size
}

const hex = new Int8Array(256).fill(-1)
for (const [at, char] of [..."0123456789ABCDEF"].entries()) hex[char.charCodeAt(0)] = at
for (const [at, char] of [..."abcdef"].entries()) hex[char.charCodeAt(0)] = at + 10

const isSpace = (byte: number | undefined) => byte === 32 || byte === 9

/** White space before a line break is added in transport (rule 3). A `=` that encodes nothing is literal. */
export const quotedPrintable = (body: Uint8Array, into?: Uint8Array): number => {
  const room = into?.length ?? Infinity
  const end = body.length
  let size = 0
  const put = (byte: number) => {
    if (into !== undefined && size < room) into[size] = byte
    size++
  }
  let at = 0
  while (at < end && size < room) {
    const byte = body[at]!
    if (isSpace(byte)) {
      let after = at
      while (after < end && isSpace(body[after])) after++
      const ends = after === end || body[after] === 10 || (body[after] === 13 && body[after + 1] === 10)
      if (!ends) for (let space = at; space < after; space++) put(body[space]!)
      at = after
    } else if (byte === 61) {
      const high = at + 2 < end ? hex[body[at + 1]!]! : -1
      const low = at + 2 < end ? hex[body[at + 2]!]! : -1
      if (at + 3 <= end && high >= 0 && low >= 0) {
        put((high << 4) | low)
        at += 3
        continue
      }
      let after = at + 1
      while (after < end && isSpace(body[after])) after++
      if (after === end) at = end
      else if (body[after] === 10) at = after + 1
      else if (body[after] === 13 && body[after + 1] === 10) at = after + 2
      else {
        put(byte)
        at++
      }
    } else {
      put(byte)
      at++
    }
  }
  return Math.min(size, room)
}

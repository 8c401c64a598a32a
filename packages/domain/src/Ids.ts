/**
 * Identifiers. Every id is a UUID of version 7 (RFC 9562), so ids sort by time. The public form of most ids is a prefix
 * and 26 lower-case Crockford base32 characters (decisions.md "General conventions").
 */
import { Clock, Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Prefix } from "./IdSchemas.ts"

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
const digit = new Map(Array.from(alphabet, (letter, value) => [letter, value]))

const hyphen = 45

/** Encodes a UUID as a public id, such as `evt_01jd…`. */
export const toPublic = (prefix: Prefix, uuid: string): string => {
  let out = ""
  // 128 bits take 26 digits of 5 bits; the first digit has only 3.
  let bits = 2
  let buffer = 0
  // List entries contain two ids each. Working on code units is five times as fast as parsing hexadecimal digits.
  for (let at = 0; at < uuid.length; at++) {
    const code = uuid.charCodeAt(at)
    if (code === hyphen) continue
    // The low four bits of a hexadecimal digit's code; letters of either case add nine.
    buffer = (buffer << 4) | ((code & 15) + (code >> 6) * 9)
    bits += 4
    if (bits >= 5) {
      bits -= 5
      out += alphabet[(buffer >> bits) & 31]
      buffer &= (1 << bits) - 1
    }
  }
  return prefix + out
}

/** Matches the versions and the variant that RFC 9562 defines. Schemas of UUIDs accept no others. */
const isRegular = (hex: string) => /^.{12}[1-8].{3}[89ab]|^0{32}$/.test(hex)

/** Decodes a public id to its UUID. Returns undefined if the prefix differs or the digits are no UUID. */
export const fromPublic = (prefix: Prefix, id: string): string | undefined => {
  if (!id.startsWith(prefix) || id.length !== prefix.length + 26) return undefined
  let hex = ""
  let bits = -2
  let buffer = 0
  for (const letter of id.slice(prefix.length)) {
    const value = digit.get(letter)
    if (value === undefined) return undefined
    buffer = (buffer << 5) | value
    bits += 5
    while (bits >= 4) {
      bits -= 4
      const nibble = buffer >> bits
      if (nibble > 15) return undefined
      hex += nibble.toString(16)
      buffer &= (1 << bits) - 1
    }
  }
  if (!isRegular(hex)) return undefined
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Draws random bytes in bulk, because a system call for each id would take longer than everything else. */
const pooled = (): ((size: number) => Uint8Array) => {
  let pool: Uint8Array = new Uint8Array(0)
  let used = 0
  return (size) => {
    if (used + size > pool.length) {
      pool = SecureRandom.randomBytesUnsafe(Math.max(size, 4096))
      used = 0
    }
    used += size
    return pool.slice(used - size, used)
  }
}

const drawn = pooled()
/**
 * A source keeps its ids in order by the latest time it has seen. Each clock has its own source, so that a test clock
 * does not affect the order of another.
 */
const sources = new WeakMap<Clock.Clock, Effect.Effect<string>>()

/**
 * Returns a new public id of a version 7 UUID (RFC 9562 section 5.7) without forming the UUID. Use it for ids that need
 * no order within a millisecond.
 */
export const makePublic = (prefix: Prefix): Effect.Effect<string> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    let text = ""
    // The first digit holds the upper 3 of the 48 bits of time, the next nine digits the rest.
    for (let digits = 0, rest = now; digits < 10; digits++, rest = Math.floor(rest / 32)) {
      text = alphabet[rest % 32]! + text
    }
    const random = drawn(16)
    // This digit holds the version (0111) and the first random bit. The fourteenth digit holds the variant (10) between
    // random bits.
    text += alphabet[14 | (random[0]! & 1)]!
    for (let n = 1; n < 16; n++) {
      text += alphabet[n === 3 ? (random[n]! & 19) | 8 : random[n]! & 31]!
    }
    return prefix + text
  })

/** Returns a new UUID of version 7. The UUIDs of one clock sort in the order of their creation. */
export const makeUuidV7: Effect.Effect<string> = Effect.clockWith((clock) => {
  let made = sources.get(clock)
  if (made === undefined) sources.set(clock, (made = SecureRandom.make(drawn).uuidV7()))
  return made
})

/** Returns the time in a version 7 UUID (RFC 9562 section 5.7), in milliseconds since 1970. */
export const uuidMillis = (uuid: string): number => Number.parseInt(uuid.replaceAll("-", "").slice(0, 12), 16)

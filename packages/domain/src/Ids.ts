/**
 * Identifiers. Every id is a version 7 uuid (RFC 9562), so ids sort by time; the public form of most is a prefix and
 * 26 Crockford base32 characters of it, lower case (decisions.md "General conventions").
 */
import { Clock, Effect } from "effect"
import { SecureRandom } from "effect/crypto"

export type Prefix = "evt_" | "msg_" | "thr_" | "wh_" | "dlv_" | "req_" | "exp_" | "aud_"

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
const digit = new Map(Array.from(alphabet, (letter, value) => [letter, value]))

const hyphen = 45

/** `evt_01jd…` for the uuid of an Event. */
export const toPublic = (prefix: Prefix, uuid: string): string => {
  let out = ""
  // 128 bits are 26 digits of 5 bits, the first of which has only 3.
  let bits = 2
  let buffer = 0
  // Lists have two of them in each entry: code units in place of letters and numbers made of them are five times as fast.
  for (let at = 0; at < uuid.length; at++) {
    const code = uuid.charCodeAt(at)
    if (code === hyphen) continue
    // The low half of a hexadecimal digit's code, and nine more for a letter of either case.
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

/** The versions and the variant that RFC 9562 gives out: others are in no schema of a uuid. */
const isRegular = (hex: string) => /^.{12}[1-8].{3}[89ab]|^0{32}$/.test(hex)

/** The uuid of a public id; undefined when it is not one of this prefix, or when no uuid has those digits. */
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

/** Random bytes are drawn in bulk: a call to the system for each id takes longer than the rest of making it. */
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
/** Order is kept by remembering the latest time; another clock's times are not to be ordered after this one's. */
const sources = new WeakMap<Clock.Clock, Effect.Effect<string>>()

/**
 * A fresh public id, by the clock of the running effect: what {@link toPublic} makes of a version 7 uuid (RFC 9562
 * section 5.7), without making the uuid. For ids that nobody needs to be in order.
 */
export const makePublic = (prefix: Prefix): Effect.Effect<string> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    let text = ""
    // The first digit has the upper 3 bits of 48, the next nine the rest.
    for (let digits = 0, rest = now; digits < 10; digits++, rest = Math.floor(rest / 32)) {
      text = alphabet[rest % 32]! + text
    }
    const random = drawn(16)
    // The version, 0111, and the first random bit; at the fourteenth digit the variant, 10, between random bits.
    text += alphabet[14 | (random[0]! & 1)]!
    for (let n = 1; n < 16; n++) {
      text += alphabet[n === 3 ? (random[n]! & 19) | 8 : random[n]! & 31]!
    }
    return prefix + text
  })

/** A fresh id by the clock of the running effect; ids by one clock sort in the order they were made. */
export const makeUuidV7: Effect.Effect<string> = Effect.clockWith((clock) => {
  let made = sources.get(clock)
  if (made === undefined) sources.set(clock, (made = SecureRandom.make(drawn).uuidV7()))
  return made
})

/** Returns the time in a version 7 UUID (RFC 9562 section 5.7), in milliseconds since 1970. */
export const uuidMillis = (uuid: string): number => Number.parseInt(uuid.replaceAll("-", "").slice(0, 12), 16)

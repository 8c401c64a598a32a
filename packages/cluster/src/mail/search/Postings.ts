/**
 * Posting lists of one segment: which of its 256 messages contain which gram. A bucket is a sequence of entries: the
 * gram in three bytes, the number of messages in one byte, and the position of each message in one byte. If many
 * messages contain the gram, the number is 0 and a bitmap of all messages follows. A bucket that would be too large is
 * stored empty and matches every message, so a message from a stranger cannot make a search read much.
 */
import * as Grams from "./Grams.ts"

export const places = 256
const words = places / 32

/** A set of messages as a bitmap. */
type Places = Uint32Array

export const everywhere = (): Places => new Uint32Array(words).fill(0xffff_ffff)

/** A bitmap is shorter for at least this number of messages. */
const many = words * 4

/** Maximum size of a bucket in bytes; 256 messages with 4 kB of English prose take about 600. */
const largest = 16 * 1024

export interface Bucket {
  readonly bucket: number
  readonly entries: Uint8Array
}

/** Maximum number of distinct grams; 256 messages of prose have about 10,000. */
const mostGrams = 1 << 18

/** Makes a builder that collects texts. It takes 8 to 16 MB and is reused for one segment after another. */
export const make = () => {
  const slots = new Int32Array(Grams.count)
  let grams: Array<number> = []
  let bits = new Uint32Array(words * 4096)
  const full = new Set<number>()

  const clear = (): void => {
    for (const gram of grams) slots[gram] = 0
    bits.fill(0, 0, grams.length * words)
    grams = []
    full.clear()
  }

  /** Returns a new slot for a gram, or 0 if there are too many. */
  const slotOf = (gram: number): number => {
    if (grams.length === mostGrams) {
      full.add(Grams.bucketOf(gram))
      return 0
    }
    const slot = grams.push(gram)
    slots[gram] = slot
    if (slot * words > bits.length) {
      const larger = new Uint32Array(bits.length * 2)
      larger.set(bits)
      bits = larger
    }
    return slot
  }

  /** Adds the grams that start between `from` and `to`: a large text is added in parts. */
  const add = (place: number, text: string, from = 0, to = text.length): void => {
    const word = place >>> 5
    const bit = 1 << (place & 31)
    const last = Math.min(to, Grams.numberOf(text))
    for (let at = from, gram = Grams.pairAt(text, from); at < last; at++) {
      gram = Grams.gramAt(text, at, gram)
      const slot = slots[gram]! || slotOf(gram)
      if (slot > 0) bits[(slot - 1) * words + word]! |= bit
    }
  }

  const write = (into: Array<number>, gram: number, at: number): void => {
    let count = 0
    for (let n = 0; n < words; n++) for (let left = bits[at + n]!; left !== 0; left &= left - 1) count++
    into.push(gram >>> 16, (gram >>> 8) & 255, gram & 255, count < many ? count : 0)
    for (let n = 0; n < words; n++) {
      const word = bits[at + n]!
      if (count < many) {
        for (let left = word; left !== 0; left &= left - 1) into.push(n * 32 + 31 - Math.clz32(left & -left))
      } else into.push(word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255)
    }
  }

  /** Yields all buckets with entries; each step is short. */
  function* buckets(): Generator<Bucket> {
    const byBucket = Array.from({ length: Grams.buckets }, (): Array<number> => [])
    for (const gram of grams) byBucket[Grams.bucketOf(gram)]!.push(gram)
    for (const [bucket, own] of byBucket.entries()) {
      if (own.length === 0 && !full.has(bucket)) continue
      const entries: Array<number> = []
      for (const gram of full.has(bucket) ? [] : own) {
        if (entries.length > largest) break
        write(entries, gram, (slots[gram]! - 1) * words)
      }
      yield { bucket, entries: Uint8Array.from(entries.length > largest ? [] : entries) }
    }
  }

  return { add, buckets, clear }
}

export type Postings = ReturnType<typeof make>

/** Removes from `found` the messages that the bucket excludes. */
export const narrow = (found: Places, entries: Uint8Array, { first, last }: Grams.GramRange): void => {
  if (entries.length === 0) return
  const having = new Uint32Array(words)
  let at = 0
  while (at < entries.length) {
    const gram = (entries[at]! << 16) | (entries[at + 1]! << 8) | entries[at + 2]!
    const count = entries[at + 3]!
    const from = at + 4
    at = from + (count === 0 ? many : count)
    if (gram < first || gram > last) continue
    if (count > 0) {
      for (let n = from; n < at; n++) having[entries[n]! >>> 5]! |= 1 << (entries[n]! & 31)
    } else {
      for (let n = 0; n < words; n++) {
        const word = from + n * 4
        having[n]! |=
          (entries[word]! << 24) | (entries[word + 1]! << 16) | (entries[word + 2]! << 8) | entries[word + 3]!
      }
    }
  }
  for (let n = 0; n < words; n++) found[n]! &= having[n]!
}

/** Returns the positions in a set in descending order. */
export const placesOf = (found: Places): ReadonlyArray<number> => {
  const list: Array<number> = []
  for (let place = places - 1; place >= 0; place--) {
    if ((found[place >>> 5]! >>> (place & 31)) & 1) list.push(place)
  }
  return list
}

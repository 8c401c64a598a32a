/**
 * Sets of numbers as IMAP writes them (`1:4,7,9:*`), stored as sorted ranges that neither touch nor overlap. The cost
 * of a set depends on its ranges and not on how many numbers it contains, and the number of ranges a client can send is
 * bounded.
 */

export type Range = readonly [first: number, last: number]
export type Ranges = ReadonlyArray<Range>

/** Maximum ranges of one set. */
export const limit = 10_000

/** UIDs and sequence numbers are 32 bits (RFC 9051 section 9, nz-number). */
export const highest = 0xffff_ffff

/** A set that may contain `*`, which is resolved where the set is used. */
export type SequenceSet = ReadonlyArray<readonly [first: number | "*", last: number | "*"]>

const [zero, nine, star, colon, comma] = [48, 57, 42, 58, 44]

/**
 * Parses a set; returns undefined if the text is not a valid sequence set. It reads characters one by one: a set can be
 * as long as a command, and a regular expression per element takes ten times as long.
 */
export const read = (text: string): SequenceSet | undefined => {
  const written: Array<readonly [number | "*", number | "*"]> = []
  let at = 0
  const number = (): number | "*" | undefined => {
    if (text.charCodeAt(at) === star) {
      at++
      return "*"
    }
    const start = at
    let value = 0
    for (let code = text.charCodeAt(at); code >= zero && code <= nine; code = text.charCodeAt(++at)) {
      value = value * 10 + code - zero
    }
    return at > start && at - start <= 10 && value >= 1 && value <= highest ? value : undefined
  }
  while (true) {
    if (written.length === limit) return undefined
    const first = number()
    if (first === undefined) return undefined
    let last: typeof first | undefined = first
    if (text.charCodeAt(at) === colon) {
      at++
      last = number()
      if (last === undefined) return undefined
    }
    written.push([first, last])
    if (at === text.length) return written
    if (text.charCodeAt(at) !== comma) return undefined
    at++
  }
}

/** Whether the ranges are sorted, not empty and not adjacent. */
const isNormal = (ranges: ReadonlyArray<Range>): boolean => {
  let before = -1
  for (const [first, last] of ranges) {
    if (first > last || first <= before + 1) return false
    before = last
  }
  return true
}

/** Sorts and merges ranges. */
const normalized = (ranges: ReadonlyArray<Range>): Ranges => {
  if (isNormal(ranges)) return ranges
  const sorted = ranges.filter(([first, last]) => first <= last).sort((a, b) => a[0] - b[0])
  const out: Array<[number, number]> = []
  for (const [first, last] of sorted) {
    const before = out.at(-1)
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last)
    else out.push([first, last])
  }
  return out
}

/**
 * Replaces `*` by `star`. In a Mailbox whose last number is 7, `9:*` is `7:9`, since the order does not matter (section
 * 9, seq-range).
 */
export const resolve = (written: SequenceSet, star: number): Ranges =>
  normalized(
    written.map(([a, b]) => {
      const first = a === "*" ? star : a
      const last = b === "*" ? star : b
      return first <= last ? [first, last] : [last, first]
    }),
  )

/** Converts ascending numbers to ranges. */
export const of = (numbers: Iterable<number>): Ranges => {
  const out: Array<[number, number]> = []
  for (const number of numbers) {
    const before = out.at(-1)
    if (before !== undefined && number === before[1] + 1) before[1] = number
    else out.push([number, number])
  }
  return out
}

export const has = (ranges: Ranges, number: number): boolean => {
  let low = 0
  let high = ranges.length - 1
  while (low <= high) {
    const middle = (low + high) >>> 1
    const [first, last] = ranges[middle]!
    if (number < first) high = middle - 1
    else if (number > last) low = middle + 1
    else return true
  }
  return false
}

/** Returns the numbers of the first set that are not in the second. */
export const without = (ranges: Ranges, others: Ranges): Ranges => {
  const out: Array<Range> = []
  let at = 0
  for (const [first, last] of ranges) {
    let from = first
    while (at < others.length && others[at]![1] < from) at++
    for (let next = at; next < others.length && others[next]![0] <= last; next++) {
      if (others[next]![0] > from) out.push([from, others[next]![0] - 1])
      from = others[next]![1] + 1
    }
    if (from <= last) out.push([from, last])
  }
  return out
}

export const count = (ranges: Ranges): number => ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0)

export const write = (ranges: Ranges): string =>
  ranges.map(([first, last]) => (first === last ? String(first) : `${first}:${last}`)).join(",")

/** Writes numbers in the given order, as COPYUID requires; ascending runs become ranges. */
export const writeInOrder = (numbers: Iterable<number>): string => write(of(numbers))

/**
 * A session's view of its folder: which messages have which sequence number. It only changes when the session sends the
 * change (RFC 9051 section 7.5.1), so both sides agree on every number. A removed message keeps its number until
 * EXPUNGE or VANISHED is sent.
 */
import * as Sets from "../protocol/Sets.ts"

export class View {
  /** Ascending. */
  #uids: Array<number>
  /** Removed messages that the client still knows. */
  readonly #ghosts = new Set<number>()

  constructor(uids: ReadonlyArray<number>) {
    this.#uids = [...uids]
  }

  get count(): number {
    return this.#uids.length
  }

  get last(): number {
    return this.#uids.at(-1) ?? 0
  }

  isGhost(uid: number): boolean {
    return this.#ghosts.has(uid)
  }

  /** Returns the sequence number of a UID, or 0 if the view does not contain it. */
  numberOf(uid: number): number {
    let low = 0
    let high = this.#uids.length - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const found = this.#uids[middle]!
      if (found === uid) return middle + 1
      if (found < uid) low = middle + 1
      else high = middle - 1
    }
    return 0
  }

  /** Adds messages with UIDs above all others of the view. */
  add(uids: ReadonlyArray<number>): boolean {
    const added = uids.filter((uid) => uid > this.last)
    for (const uid of added) this.#uids.push(uid)
    return added.length > 0
  }

  /** Marks messages as removed; they keep their numbers until {@link expunge}. */
  markRemoved(uids: ReadonlyArray<number>): void {
    for (const uid of uids) if (this.numberOf(uid) > 0) this.#ghosts.add(uid)
  }

  markAllRemoved(): void {
    for (const uid of this.#uids) this.#ghosts.add(uid)
  }

  /** Removes marked messages from the view. Returns their numbers as successive EXPUNGE responses, and their UIDs. */
  expunge(): { readonly numbers: ReadonlyArray<number>; readonly uids: ReadonlyArray<number> } {
    if (this.#ghosts.size === 0) return { numbers: [], uids: [] }
    const numbers: Array<number> = []
    const uids: Array<number> = []
    const left: Array<number> = []
    for (const uid of this.#uids) {
      if (this.#ghosts.has(uid)) {
        // Each EXPUNGE shifts the numbers after it.
        numbers.push(left.length + 1)
        uids.push(uid)
      } else left.push(uid)
    }
    this.#uids = left
    this.#ghosts.clear()
    return { numbers, uids }
  }

  /** Returns the UIDs of a set of sequence numbers, or undefined if a number is past the end. */
  ofNumbers(set: Sets.SequenceSet): Sets.Ranges | undefined {
    if (this.count === 0) return undefined
    const ranges = Sets.resolve(set, this.count)
    if (ranges.at(-1)![1] > this.count) return undefined
    return this.uidsAt(ranges)
  }

  /** Returns the UIDs at existing sequence numbers. */
  uidsAt(ranges: Sets.Ranges): Sets.Ranges {
    const found: Array<[number, number]> = []
    for (const [first, last] of ranges) {
      if (first > this.count) break
      this.#gather(found, first - 1, Math.min(last, this.count))
    }
    return found
  }

  /** Returns the UIDs of a set that are in the view; others do not exist for the session. */
  ofUids(set: Sets.SequenceSet): Sets.Ranges {
    return this.within(Sets.resolve(set, this.last))
  }

  /** Returns the part of the ranges that is in the view. */
  within(ranges: Sets.Ranges): Sets.Ranges {
    const found: Array<[number, number]> = []
    const { last: end } = this
    for (const [first, last] of ranges) {
      if (first > end) break
      this.#gather(found, this.#place(first), this.#place(last + 1))
    }
    return found
  }

  /** Appends the UIDs at these indexes, which are above those already added. */
  #gather(found: Array<[number, number]>, from: number, to: number): void {
    for (let at = from; at < to; at++) {
      const uid = this.#uids[at]!
      const before = found.at(-1)
      if (before !== undefined && before[1] + 1 === uid) before[1] = uid
      else found.push([uid, uid])
    }
  }

  /** Returns the sequence numbers of UIDs, in the same order. */
  numbersOf(uids: Iterable<number>): ReadonlyArray<number> {
    const numbers: Array<number> = []
    for (const uid of uids) {
      const number = this.numberOf(uid)
      if (number > 0) numbers.push(number)
    }
    return numbers
  }

  /** Returns the index of the first UID that is not below `uid`. */
  #place(uid: number): number {
    let low = 0
    let high = this.#uids.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#uids[middle]! < uid) low = middle + 1
      else high = middle
    }
    return low
  }
}

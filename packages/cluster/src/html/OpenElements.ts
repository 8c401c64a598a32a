/**
 * The open elements while HTML is read, with their visibility. Unmatched end tags are ignored, and elements are closed
 * implicitly like in a browser, so that a hidden element does not hide its siblings. Every operation takes amortized
 * constant time for any HTML.
 */
import * as TextVisibility from "./TextVisibility.ts"

/** Largest depth. Deeper elements inherit the visibility of their ancestor. */
const deepest = 5_000

/** For each start tag, the elements that it closes implicitly, unless one of the others was opened since. */
const ending: Readonly<Record<string, readonly [ended: ReadonlyArray<string>, kept: ReadonlyArray<string>]>> = {
  li: [["li"], ["ul", "ol"]],
  dt: [["dt", "dd"], ["dl"]],
  dd: [["dt", "dd"], ["dl"]],
  td: [["td", "th"], ["table"]],
  th: [["td", "th"], ["table"]],
  tr: [["tr"], ["table"]],
  a: [["a"], []],
}
const walls = ["td", "th", "table", "caption"]
const ofTables = new Set([...walls, "tr", "tbody", "thead", "tfoot"])

export class OpenElements {
  readonly #names: Array<string> = []
  readonly #sights: Array<TextVisibility.TextVisibility> = []
  /** Positions of the open elements by name, the innermost last. */
  readonly #places = new Map<string, Array<number>>()
  readonly #onEnd: (name: string) => void

  constructor(onEnd: (name: string) => void) {
    this.#onEnd = onEnd
  }

  get sight(): TextVisibility.TextVisibility {
    return this.#sights.at(-1) ?? TextVisibility.open
  }

  /** Adds an element. Returns false beyond the largest depth. */
  push(name: string, sight: TextVisibility.TextVisibility): boolean {
    if (this.#names.length >= deepest) return false
    const places = this.#places.get(name)
    if (places === undefined) this.#places.set(name, [this.#names.length])
    else places.push(this.#names.length)
    this.#names.push(name)
    this.#sights.push(sight)
    return true
  }

  #last(names: ReadonlyArray<string>): number {
    let last = -1
    for (const name of names) last = Math.max(last, this.#places.get(name)?.at(-1) ?? -1)
    return last
  }

  /** Closes the elements from a position on. */
  #cut(place: number): void {
    while (this.#names.length > place) {
      const name = this.#names.pop()!
      this.#sights.pop()
      this.#places.get(name)!.pop()
      this.#onEnd(name)
    }
  }

  close(name: string): void {
    const place = this.#last([name])
    // An end tag in a cell does not close elements around the table.
    if (place >= 0 && (ofTables.has(name) || place > this.#last(walls))) this.#cut(place)
  }

  /** Closes the elements that a start tag closes implicitly. */
  implied(name: string, isBlock: boolean): void {
    const [ended, kept] = ending[name] ?? [[], []]
    const place = this.#last(ended)
    if (place >= 0 && place > this.#last(kept)) this.#cut(place)
    if (isBlock && this.#last(["p"]) > this.#last(walls)) this.#cut(this.#last(["p"]))
  }
}

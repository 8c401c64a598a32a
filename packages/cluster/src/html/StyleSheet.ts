/**
 * What the style sheets of a message say about being seen, as far as it can be told without a browser: the classes and ids
 * that they hide, and whether they set backgrounds and sizes, which the styles of an element then no longer prove.
 */
import * as TextVisibility from "./TextVisibility.ts"

/** Characters of style sheets that are read of one message. */
const atMost = 64 * 1024

export class StyleSheet {
  #left = atMost
  readonly #hidden = new Set<string>()
  setsGround = false
  setsSize = false

  /** Reads the text of a `style` element. Rules within `@media` and the like hold only on some screens. */
  add(text: string): void {
    const sheet = text
      .slice(0, this.#left)
      .replace(/\/\*[^]*?\*\//g, " ")
      .toLowerCase()
    this.#left -= Math.min(this.#left, text.length)
    this.setsGround ||= sheet.includes("background")
    this.setsSize ||= sheet.includes("font")
    let depth = 0
    let from = 0
    let selectors = ""
    for (const { 0: brace, index } of sheet.matchAll(/[{}]/g)) {
      const between = sheet.slice(from, index)
      from = index + 1
      if (brace === "{") {
        if (depth++ === 0) selectors = between
        continue
      }
      if (depth === 1 && !selectors.includes("@")) this.#rule(selectors, between)
      depth = Math.max(0, depth - 1)
    }
  }

  #rule(selectors: string, declarations: string): void {
    if (
      TextVisibility.isSeen(
        TextVisibility.within(TextVisibility.open, "", declarations, { color: undefined, bgcolor: undefined }),
        0,
      )
    )
      return
    for (const selector of selectors.split(",")) {
      const name = /^\s*[a-z0-9]*([.#][\w-]+)\s*$/.exec(selector)?.[1]
      if (name !== undefined) this.#hidden.add(name)
    }
  }

  /** Whether an element with this id and these classes is hidden. */
  hides(id: string, classes: string): boolean {
    if (this.#hidden.size === 0) return false
    return (
      this.#hidden.has(`#${id.trim().toLowerCase()}`) ||
      classes
        .toLowerCase()
        .split(/\s+/, 20)
        .some((name) => this.#hidden.has(`.${name}`))
    )
  }
}

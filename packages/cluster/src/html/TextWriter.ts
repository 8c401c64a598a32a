/** Writes the text of HTML: collapses white space, keeps at most one empty line, and marks quotations with `>`. */

/** Invisible characters that do not separate words. Senders use them to split words or to pad previews. */
const unseen = /(?:[\u00ad\u180e\u200b\u2060\ufeff]|\u034f)+/g
/** Joiners without a preceding letter, where they have no effect. */
const joiners = /(^|[\s\u00a0])[\u200c\u200d]+/g

const spaces = /[\s\u00a0]+/g
const quotesAtMost = 10

export class TextWriter {
  readonly #pieces: Array<string> = []
  #breaks = 0
  #pendingSpace = false
  #isEmpty = true
  /** Quotation depth of the following text. */
  quotes = 0
  #quoted = 0

  static folded(text: string): string {
    return text.replace(unseen, "").replace(joiners, "$1").replace(spaces, " ").trim()
  }

  text(raw: string): void {
    const isApart = this.#isEmpty || this.#breaks > 0 || this.#pendingSpace
    const shown = raw
      .replace(unseen, "")
      .replace(joiners, (run, before: string, at: number) => (at > 0 || before !== "" || isApart ? before : run))
    const text = shown.replace(spaces, " ")
    if (text === "") return
    if (text === " ") return this.space()
    if (text.startsWith(" ")) this.#pendingSpace = true
    this.#put(text.trim())
    this.#pendingSpace = text.endsWith(" ")
  }

  /** Writes text with its spaces and line breaks. */
  verbatim(raw: string): void {
    for (const [at, line] of raw.replace(unseen, "").replaceAll("\u00a0", " ").split(/\r?\n/).entries()) {
      if (at > 0) this.line(true)
      if (line !== "") this.#put(line)
    }
  }

  /** Writes text directly after the last word, before any pending line breaks. */
  attach(text: string): void {
    this.#pieces.push(text)
  }

  space(): void {
    this.#pendingSpace = true
  }

  line(explicit: boolean): void {
    this.#breaks = explicit ? this.#breaks + 1 : Math.max(this.#breaks, 1)
  }

  paragraph(): void {
    this.#breaks = Math.max(this.#breaks, 2)
  }

  #put(text: string): void {
    const depth = Math.min(Math.max(this.quotes, 0), quotesAtMost)
    if (!this.#isEmpty && this.#breaks === 0 && depth !== this.#quoted) this.#breaks = 1
    if (this.#isEmpty || this.#breaks > 0) {
      if (this.#breaks > 1 && !this.#isEmpty) this.#pieces.push("\n", ">".repeat(Math.min(depth, this.#quoted)))
      if (!this.#isEmpty) this.#pieces.push("\n")
      if (depth > 0) this.#pieces.push(">".repeat(depth), " ")
    } else if (this.#pendingSpace) this.#pieces.push(" ")
    this.#quoted = depth
    this.#breaks = 0
    this.#isEmpty = false
    this.#pendingSpace = false
    this.#pieces.push(text)
  }

  finish(): string {
    return this.#pieces.join("")
  }
}

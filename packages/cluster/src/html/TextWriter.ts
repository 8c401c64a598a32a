/** Writes the text of HTML as it goes by: folds white space, keeps at most one empty line, and marks what is quoted. */

/** Characters that nobody sees and that divide no word: they break it, or pad a preview. */
const unseen = /(?:[\u00ad\u180e\u200b\u2060\ufeff]|\u034f)+/g
/** Joiners, which shape letters, and show nothing where there is no letter before them. */
const joiners = /(^|[\s\u00a0])[\u200c\u200d]+/g

const spaces = /[\s\u00a0]+/g
const quotesAtMost = 10

export class TextWriter {
  readonly #pieces: Array<string> = []
  #breaks = 0
  #pendingSpace = false
  #isEmpty = true
  /** How many quotes the text stands in. */
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

  /** With its spaces and line breaks. */
  verbatim(raw: string): void {
    for (const [at, line] of raw.replace(unseen, "").replaceAll("\u00a0", " ").split(/\r?\n/).entries()) {
      if (at > 0) this.line(true)
      if (line !== "") this.#put(line)
    }
  }

  /** Right behind the last word, whatever breaks wait for the next one. */
  attach(text: string): void {
    this.#pieces.push(text)
  }

  space(): void {
    this.#pendingSpace = true
  }

  line(explicit: boolean): void {
    this.#breaks = explicit ? this.#breaks + 1 : Math.max(this.#breaks, 1)
    this.#pendingSpace = false
  }

  paragraph(): void {
    this.#breaks = Math.max(this.#breaks, 2)
    this.#pendingSpace = false
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

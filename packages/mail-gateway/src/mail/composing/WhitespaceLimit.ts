/**
 * Limits white space that could hide what follows it. A run of invisible characters is cut to what is used for layout,
 * and between two words there is no more than a reader scrolls past in a moment.
 */

/** A character that is invisible, although Unicode classifies some of them as letters (Hangul fillers). */
const invisibleOne =
  /(?:[\s\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufeff\uffa0]|[\u{e0000}-\u{e007f}]|\u034f|\u180b|\u180c|\u180d|\u180f|[\ufe00-\ufe0f])/u
    .source
const invisible = new RegExp(`${invisibleOne}+`, "gu")

/** Control characters that affect a terminal and have no use in text. */
// oxlint-disable-next-line no-control-regex -- control characters are removed
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g

/** Combining marks on one letter; more than any script needs overlap adjacent lines. */
const piled = /([\p{M}\u200c\u200d]{8})[\p{M}\u200c\u200d]+/gu

/** The maximum line breaks, and other characters, of one run. */
const limits = (breaks: number, characters: number) => ({
  breaks,
  characters,
  /** Matches runs that may be too long, so that the spaces between words cost nothing. */
  long: new RegExp(`${invisibleOne}{${breaks + 1},}`, "gu"),
})
const runOfText = limits(10, 200)
const runOfMarkup = limits(3, 40)

const cut = (text: string, most: typeof runOfText): string =>
  text.replace(piled, "$1").replace(most.long, (run) => {
    let breaks = 0
    let characters = 0
    let kept = ""
    for (const character of run) {
      if (character === "\n" || character === "\u2028" || character === "\u2029") {
        if (++breaks > most.breaks) continue
      } else if (++characters > most.characters) continue
      kept += character
      if (breaks > most.breaks && characters > most.characters) break
    }
    return kept
  })

/** Limits a plain text body; its lines end in LF. */
export const ofText = (text: string): string =>
  cut(text.replace(/\r\n?/g, "\n").replace(controls, ""), runOfText).trimEnd()

/** Limits a single line, such as a subject or a name. */
// oxlint-disable-next-line no-control-regex -- control characters are removed
export const ofLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim()

/** Limits text between tags. */
export const ofMarkup = (text: string): string => cut(text.replace(/\r\n?/g, "\n").replace(controls, ""), runOfMarkup)

/** The maximum blank lines between two words. */
const linesAtMost = 200
const charactersInLine = 60

/** Counts blank content since the last word, across tags. */
export class Blanks {
  private lines = 0

  /** Adds blank lines. Returns false, and adds nothing, if the limit is exceeded. */
  take(lines: number): boolean {
    if (this.lines + lines > linesAtMost) return false
    this.lines += lines
    return true
  }

  /** Returns the text, or an empty string if it is blank or invisible and exceeds the limit. */
  text(text: string, isSeen: boolean): string {
    const shown = text.replace(invisible, "")
    if (isSeen && /[\p{L}\p{N}\p{So}]/u.test(shown)) {
      this.lines = 0
      return text
    }
    const breaks = text.split("\n").length - 1
    // Characters that do not collapse form a line, for example in a separate element.
    const solid = /[^ \t\n]/.test(text) ? 1 : 0
    return this.take(Math.max(solid, breaks) + text.length / charactersInLine) ? text : ""
  }
}

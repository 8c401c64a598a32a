/**
 * White space, as far as it could keep a reader from what stands below it. A run of nothing visible is cut to what
 * somebody writes for looks; between two words there can be no more of it than a reader scrolls past in a moment.
 */

/** Characters that show nothing, though some of them are letters to Unicode (the Hangul fillers). */
const invisible =
  /(?:[\s\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufeff\uffa0]|[\u{e0000}-\u{e007f}]|\u034f|\u180b|\u180c|\u180d|\u180f|[\ufe00-\ufe0f])+/gu

/** Characters that do something to a screen, and no reader has a use for. */
// oxlint-disable-next-line no-control-regex -- they are what is removed
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g

/** Marks over and under one letter; more than any script needs reach into the lines around. */
const piled = /([\p{M}\u200c\u200d]{8})[\p{M}\u200c\u200d]+/gu

/** Line breaks in one run, and characters of it. */
const runOfText = { breaks: 10, characters: 200 }
const runOfMarkup = { breaks: 3, characters: 40 }

const cut = (text: string, most: typeof runOfText): string =>
  text.replace(piled, "$1").replace(invisible, (run) => {
    if (run.length <= most.breaks) return run
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

/** A plain text body: its lines end in LF. */
export const ofText = (text: string): string =>
  cut(text.replace(/\r\n?/g, "\n").replace(controls, ""), runOfText).trimEnd()

/** What stands in one line: a subject, a name. */
// oxlint-disable-next-line no-control-regex -- they are what is removed
export const ofLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim()

/** Text between tags. */
export const ofMarkup = (text: string): string => cut(text.replace(/\r\n?/g, "\n").replace(controls, ""), runOfMarkup)

/** Lines of nothing that a reader scrolls past between two words. */
const linesAtMost = 200
const charactersInLine = 60

/** Counts what is blank since the last word, over all the tags between. */
export class Blanks {
  private lines = 0

  /** So many lines more; whether there is room for them. */
  take(lines: number): boolean {
    if (this.lines + lines > linesAtMost) return false
    this.lines += lines
    return true
  }

  /** The text, or nothing where it is blank, or cannot be seen, and there was enough of that. */
  text(text: string, isSeen: boolean): string {
    const shown = text.replace(invisible, "")
    if (isSeen && /[\p{L}\p{N}\p{So}]/u.test(shown)) {
      this.lines = 0
      return text
    }
    const breaks = text.split("\n").length - 1
    // What does not fold makes a line by itself, be it in an element of its own.
    const solid = /[^ \t\n]/.test(text) ? 1 : 0
    return this.take(Math.max(solid, breaks) + text.length / charactersInLine) ? text : ""
  }
}

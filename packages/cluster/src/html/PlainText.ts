/**
 * The text of an HTML body, for snippets, search and readers that want no HTML. The library tells tags, comments,
 * entities and raw text apart; here stands only which elements break a line. One pass, no tree, so nesting costs nothing.
 */
import { Tokenizer } from "htmlparser2"

/** Elements whose content is not text for a reader. */
const hidden = new Set(["script", "style", "head", "title", "template", "noframes", "iframe", "object", "svg", "math"])
/** Elements that cannot have content; a hidden one of these would hide the rest. */
const paragraphs = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "dl", "pre", "table"])
const lines = new Set(
  "address article aside br body caption center dd div dt fieldset figcaption figure footer form header hr li main nav section tbody tfoot thead tr".split(
    " ",
  ),
)
const cells = new Set(["td", "th"])

export const fromHtml = (html: string): string => {
  const out = new Writer()
  let name = ""
  let closing = false
  /** The hidden element we are in, and how often it is open. */
  let within: string | undefined
  let depth = 0
  /** How many elements we are in whose white space is meant. */
  let preformatted = 0

  const write = (text: string) => {
    if (within !== undefined) return
    if (preformatted > 0) out.verbatim(text)
    else out.text(text)
  }

  const mark = (tag: string, closes: boolean) => {
    if (within !== undefined) {
      if (tag === within) depth += closes ? -1 : 1
      // A body ends a head that nobody closed.
      if (depth === 0 || (within === "head" && tag === "body")) within = undefined
    } else if (hidden.has(tag)) {
      if (!closes) {
        within = tag
        depth = 1
      }
    } else if (paragraphs.has(tag)) {
      out.paragraph()
      if (tag === "pre") preformatted = Math.max(0, preformatted + (closes ? -1 : 1))
    } else if (tag === "br") out.line(true)
    else if (lines.has(tag)) {
      out.line(false)
      if (tag === "li" && !closes) out.text("- ")
    } else if (cells.has(tag) && !closes) out.space()
  }

  const tokenizer = new Tokenizer(
    { xmlMode: false, decodeEntities: true },
    {
      ontext: (start, end) => write(html.slice(start, end)),
      ontextentity: (code) => write(String.fromCodePoint(code)),
      onopentagname: (start, end) => {
        name = html.slice(start, Math.min(end, start + 20)).toLowerCase()
        closing = false
      },
      onopentagend: () => {
        if (!closing) mark(name, false)
      },
      onselfclosingtag: () => {
        if (!hidden.has(name)) mark(name, false)
      },
      onclosetag: (start, end) => {
        closing = true
        mark(html.slice(start, Math.min(end, start + 20)).toLowerCase(), true)
      },
      oncdata: () => {},
      oncomment: () => {},
      ondeclaration: () => {},
      onprocessinginstruction: () => {},
      onattribdata: () => {},
      onattribentity: () => {},
      onattribend: () => {},
      onattribname: () => {},
      onend: () => {},
    },
  )
  tokenizer.write(html)
  tokenizer.end()
  return out.finish()
}

/** Where a word may be broken, which nobody sees and no word is divided by. */
const unseen = /[\u00ad\u200b\ufeff]+/g

/** Folds white space and keeps at most one empty line, as text goes by. */
class Writer {
  private readonly pieces: Array<string> = []
  private breaks = 0
  private pendingSpace = false
  private atStart = true

  text(raw: string): void {
    const text = raw.replace(unseen, "").replace(/[\s\u00a0]+/g, " ")
    if (text === "") return
    if (text === " ") return this.space()
    if (text.startsWith(" ")) this.pendingSpace = true
    this.put(text.trim())
    this.pendingSpace = text.endsWith(" ")
  }
  /** With its spaces and line breaks. */
  verbatim(raw: string): void {
    for (const [at, line] of raw.replace(unseen, "").replaceAll("\u00a0", " ").split(/\r?\n/).entries()) {
      if (at > 0) this.line(true)
      if (line !== "") this.put(line)
    }
  }
  private put(text: string): void {
    if (!this.atStart && this.breaks > 0) this.pieces.push(this.breaks > 1 ? "\n\n" : "\n")
    else if (this.pendingSpace && !this.atStart) this.pieces.push(" ")
    this.breaks = 0
    this.atStart = false
    this.pendingSpace = false
    this.pieces.push(text)
  }
  space(): void {
    this.pendingSpace = true
  }
  line(explicit: boolean): void {
    this.breaks = explicit ? this.breaks + 1 : Math.max(this.breaks, 1)
    this.pendingSpace = false
  }
  paragraph(): void {
    this.breaks = Math.max(this.breaks, 2)
    this.pendingSpace = false
  }
  finish(): string {
    return this.pieces.join("")
  }
}

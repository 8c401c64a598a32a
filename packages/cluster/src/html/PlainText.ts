/**
 * The text of an HTML body, for snippets, search and readers that want no HTML, and its links. What a reader does not see
 * is no text: hidden elements, words of no size or of the colour of their background. Link targets stand behind their
 * words. The library tells tags, comments, entities and raw text apart; {@link OpenElements} says what is open. One pass, no
 * tree, so nesting costs nothing.
 */
import type { Link } from "@svc/domain/mail/Message"
import { Tokenizer } from "htmlparser2"
import * as Links from "./Links.ts"
import { OpenElements } from "./OpenElements.ts"
import * as TextVisibility from "./TextVisibility.ts"
import { StyleSheet } from "./StyleSheet.ts"
import { TextWriter } from "./TextWriter.ts"

const words = (text: string) => new Set(text.split(" "))

/** Elements whose content is not text for a reader. */
const hidden = words("script style head title template noframes iframe object svg math")
const paragraphs = words("p h1 h2 h3 h4 h5 h6 blockquote ul ol dl pre table")
const lines = words(
  "address article aside br body caption center dd div dt fieldset figcaption figure footer form header hr li main nav section tbody tfoot thead tr",
)
const cells = words("td th")
/** Elements that cannot have content; one of these that is hidden hides nothing else. */
const empty = words("area base br col embed hr img input link meta param source track wbr")

/** Attributes that are looked at, and characters of each. */
const attributes = words("style class id hidden aria-hidden href bgcolor background color type alt")
const attributeAtMost = 8 * 1024

interface Options {
  /** Whether link targets are written behind the words of links. */
  readonly targets: boolean
}

interface OpenLink {
  readonly url: string
  readonly words: Array<string>
  /** What the first picture in it says of itself; undefined if it has none. */
  alt: string | undefined
}

export interface Read {
  readonly text: string
  readonly links: ReadonlyArray<Link>
}

class Reader {
  readonly #html: string
  readonly #targets: boolean
  readonly #out = new TextWriter()
  readonly #links = new Map<string, Link>()
  readonly #sheet = new StyleSheet()
  #name = ""
  #closing = false
  #attribute = ""
  #given: Record<string, string> = {}
  /** The element that we are in whose content is no text, and how often it is open. */
  #within: string | undefined
  #depth = 0
  #inStyle = false
  /** How many elements we are in whose white space is meant. */
  #preformatted = 0
  #link: OpenLink | undefined
  #base: string | undefined
  readonly #open = new OpenElements((name) => {
    if (name === "a") this.#endLink()
    if (name === "blockquote" && this.#quotes.pop() === true) this.#out.quotes--
  })
  /** Of each block quotation that is open whether it quotes another message. */
  readonly #quotes: Array<boolean> = []

  constructor(html: string, { targets }: Options) {
    this.#html = html
    this.#targets = targets
  }

  read(): Read {
    const html = this.#html
    const tokenizer = new Tokenizer(
      { xmlMode: false, decodeEntities: true },
      {
        ontext: (start, end) => this.#text(html.slice(start, end)),
        ontextentity: (code) => this.#text(String.fromCodePoint(code)),
        onopentagname: (start, end) => {
          this.#name = html.slice(start, Math.min(end, start + 20)).toLowerCase()
          this.#closing = false
          this.#given = {}
        },
        onattribname: (start, end) => {
          const name = html.slice(start, Math.min(end, start + 20)).toLowerCase()
          this.#attribute = !this.#closing && attributes.has(name) && !Object.hasOwn(this.#given, name) ? name : ""
          if (this.#attribute !== "") this.#given[name] = ""
        },
        onattribdata: (start, end) => this.#value(html.slice(start, end)),
        onattribentity: (code) => this.#value(String.fromCodePoint(code)),
        onattribend: () => {
          this.#attribute = ""
        },
        onopentagend: () => {
          if (!this.#closing) this.#opens(false)
        },
        onselfclosingtag: () => {
          if (!hidden.has(this.#name)) this.#opens(true)
        },
        onclosetag: (start, end) => {
          this.#closing = true
          this.#closes(html.slice(start, Math.min(end, start + 20)).toLowerCase())
        },
        oncdata: () => {},
        oncomment: () => {},
        ondeclaration: () => {},
        onprocessinginstruction: () => {},
        onend: () => {},
      },
    )
    tokenizer.write(html)
    tokenizer.end()
    this.#endLink()
    return { text: this.#out.finish(), links: [...this.#links.values()] }
  }

  #value(text: string): void {
    if (this.#attribute === "") return
    const before = this.#given[this.#attribute]!
    if (before.length < attributeAtMost) this.#given[this.#attribute] = before + text.slice(0, attributeAtMost)
  }

  #text(text: string): void {
    if (this.#inStyle) this.#sheet.add(text)
    if (this.#within !== undefined || !TextVisibility.isSeen(this.#open.sight, TextVisibility.readingContrast)) return
    this.#link?.words.push(text)
    if (this.#preformatted > 0) this.#out.verbatim(text)
    else this.#out.text(text)
  }

  #opens(isClosed: boolean): void {
    const name = this.#name
    if (name === "style") this.#inStyle = true
    if (this.#within !== undefined) {
      if (name === this.#within) this.#depth++
      this.#left(name)
      return
    }
    if (hidden.has(name)) {
      this.#within = name
      this.#depth = 1
      return
    }
    this.#open.implied(name, paragraphs.has(name) || (lines.has(name) && name !== "br"))
    const sight = this.#sightOf(name)
    const isSeen = sight.isShown
    if (name === "base" && this.#base === undefined) this.#base = this.#given["href"]
    const isOpen = !empty.has(name) && !isClosed && this.#open.push(name, sight)
    if (isSeen && (name === "area" || (name === "a" && isOpen))) this.#beginLink()
    if (isSeen && (name === "area" || name === "img") && this.#link !== undefined) {
      this.#link.alt ||= this.#given["alt"] ?? ""
    }
    if (name === "area") this.#endLink()
    this.#breaks(name, false)
    if (name === "blockquote" && isOpen) {
      const isQuote = this.#given["type"]?.trim().toLowerCase() === "cite"
      this.#quotes.push(isQuote)
      if (isQuote) this.#out.quotes++
    }
  }

  #closes(name: string): void {
    if (name === "style") this.#inStyle = false
    if (this.#within !== undefined) {
      if (name === this.#within) this.#depth--
      this.#left("")
      return
    }
    if (hidden.has(name)) return
    this.#open.close(name)
    this.#breaks(name, true)
  }

  /** A body ends a head that nobody closed. */
  #left(opened: string): void {
    if (this.#depth === 0 || (this.#within === "head" && opened === "body")) this.#within = undefined
  }

  #breaks(tag: string, closes: boolean): void {
    if (paragraphs.has(tag)) {
      this.#out.paragraph()
      if (tag === "pre") this.#preformatted = Math.max(0, this.#preformatted + (closes ? -1 : 1))
    } else if (tag === "br") this.#out.line(true)
    else if (lines.has(tag)) {
      this.#out.line(false)
      if (tag === "li" && !closes && TextVisibility.isSeen(this.#open.sight, TextVisibility.readingContrast))
        this.#out.text("- ")
    } else if (cells.has(tag) && !closes) this.#out.space()
  }

  #sightOf(name: string): TextVisibility.TextVisibility {
    const { style = "", id = "", class: classes = "", hidden: isHidden, bgcolor, background, color } = this.#given
    const around = this.#open.sight
    if (isHidden !== undefined || this.#given["aria-hidden"]?.trim().toLowerCase() === "true") {
      return { ...around, isShown: false }
    }
    const isStyled = id !== "" || classes !== ""
    if (style === "" && !isStyled && bgcolor === undefined && background === undefined && color === undefined) {
      // Nothing of its own; `small` and the like are never so small that they cannot be read.
      return around
    }
    if (isStyled && this.#sheet.hides(id, classes)) return { ...around, isShown: false }
    // What a style sheet may have set is not known: in doubt the words are seen.
    const ground = background !== undefined || (isStyled && this.#sheet.setsGround) ? undefined : around.ground
    const size = isStyled && this.#sheet.setsSize ? TextVisibility.open.size : around.size
    return TextVisibility.within({ ...around, ground, size }, name, style, { color, bgcolor })
  }

  #beginLink(): void {
    this.#endLink()
    const url = Links.target(this.#given["href"] ?? "", this.#base)
    if (url !== undefined) this.#link = { url, words: [], alt: undefined }
  }

  #endLink(): void {
    if (this.#link === undefined) return
    const { url, words: said, alt } = this.#link
    this.#link = undefined
    const own = TextWriter.folded(said.join(""))
    // What a reader can neither see nor click is no link.
    if (own === "" && alt === undefined) return
    const shown = own === "" ? TextWriter.folded(alt!) : own
    const key = `${url} ${shown}`
    if (this.#links.size < Links.limits.links && !this.#links.has(key)) this.#links.set(key, Links.link(shown, url))
    if (!this.#targets) return
    if (own === "") this.#out.text(shown === "" ? url : `${shown} (${url})`)
    else if (!isSame(own, url)) this.#out.attach(` (${url})`)
  }
}

/** Whether the words of a link are its address, which need not be said twice. */
const isSame = (shown: string, url: string): boolean => {
  const plain = (text: string) => text.replace(/^(?:https?:\/\/|mailto:|tel:)/i, "").replace(/\/$/, "")
  return plain(shown) === plain(url)
}

const read = (html: string, options: Options): Read => new Reader(html, options).read()

/** Returns the text of HTML, with the targets of links behind their words. */
export const fromHtml = (html: string): string => read(html, { targets: true }).text

/** Returns the text of HTML alone, for content whose words name their links. */
export const wordsOf = (html: string): string => read(html, { targets: false }).text

/** Characters of HTML that are searched for links. */
const searchedAtMost = 256 * 1024

/** Returns the links of HTML that a reader sees. */
export const linksOf = (html: string): ReadonlyArray<Link> =>
  /<a(?:rea)?[\s/]/i.test(html) ? read(html.slice(0, searchedAtMost), { targets: false }).links : []

/**
 * Converts an HTML body to text, for snippets, search and clients that want no HTML, and extracts its links. Omits text
 * that a reader would not see: hidden elements, text of zero size or in the color of its background. Link targets follow
 * the link text. Uses the library's tokenizer in one pass without a tree, so that nesting costs nothing.
 */
import type { Link } from "@svc/domain/mail/Message"
import { Tokenizer } from "htmlparser2"
import * as Links from "./Links.ts"
import { OpenElements } from "./OpenElements.ts"
import * as TextVisibility from "./TextVisibility.ts"
import { TextWriter } from "./TextWriter.ts"

const words = (text: string) => new Set(text.split(" "))

/** Elements whose content is not shown. */
const hidden = words("script style head title template noframes iframe object svg math")
const paragraphs = words("p h1 h2 h3 h4 h5 h6 blockquote ul ol dl pre table")
const lines = words(
  "address article aside br body caption center dd div dt fieldset figcaption figure footer form header hr li main nav section tbody tfoot thead tr",
)
const cells = words("td th")
/** Void elements, which have no content. */
const empty = words("area base br col embed hr img input link meta param source track wbr")

/** The attributes that are read, and the largest length of a value. */
const attributes = words("style class id hidden aria-hidden href bgcolor background color type alt")
const attributeAtMost = 8 * 1024

interface Options {
  /** Whether link targets are written behind the words of links. */
  readonly targets: boolean
}

interface OpenLink {
  readonly url: string
  readonly words: Array<string>
  /** Alternative text of the first image in the link; undefined if there is no image. */
  alt: string | undefined
}

interface Read {
  readonly text: string
  readonly links: ReadonlyArray<Link>
}

class Reader {
  readonly #html: string
  readonly #targets: boolean
  readonly #out = new TextWriter()
  readonly #links = new Map<string, Link>()
  readonly #sheet = new TextVisibility.StyleSheet()
  #name = ""
  #closing = false
  #attribute = ""
  #given: Record<string, string> = {}
  /** The open element whose content is not shown, and its nesting depth. */
  #within: string | undefined
  #depth = 0
  #inStyle = false
  /** Number of open elements with preformatted text. */
  #preformatted = 0
  #link: OpenLink | undefined
  #base: string | undefined
  readonly #open = new OpenElements((name) => {
    if (name === "a") this.#endLink()
    if (name === "blockquote" && this.#quotes.pop() === true) this.#out.quotes--
  })
  /** For each open block quotation, whether it quotes another message. */
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

  /** Leaves an element without shown content at its end. A body closes an unclosed head. */
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
      // The element has no styles, and `small` and similar elements stay legible.
      return around
    }
    if (isStyled && this.#sheet.hides(id, classes)) return { ...around, isShown: false }
    // Values from a style sheet are unknown, and text counts as visible in doubt.
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
    const { url, words, alt } = this.#link
    this.#link = undefined
    const own = TextWriter.folded(words.join(""))
    // A link without text or image cannot be seen or clicked.
    if (own === "" && alt === undefined) return
    const shown = own === "" ? TextWriter.folded(alt!) : own
    const key = `${url} ${shown}`
    if (this.#links.size < Links.limits.links && !this.#links.has(key)) this.#links.set(key, Links.link(shown, url))
    if (!this.#targets) return
    if (own === "") this.#out.text(shown === "" ? url : `${shown} (${url})`)
    else if (!isSame(own, url)) this.#out.attach(` (${url})`)
  }
}

/** Returns whether a link text is the target itself, which is then not repeated. */
const isSame = (shown: string, url: string): boolean => {
  const plain = (text: string) => text.replace(/^(?:https?:\/\/|mailto:|tel:)/i, "").replace(/\/$/, "")
  return plain(shown) === plain(url)
}

const read = (html: string, options: Options): Read => new Reader(html, options).read()

/** Returns the text of HTML with link targets after the link texts. */
export const fromHtml = (html: string): string => read(html, { targets: true }).text

/** Returns the text of HTML without link targets. */
export const wordsOf = (html: string): string => read(html, { targets: false }).text

/** Number of characters of HTML that are searched for links. */
const searchedAtMost = 256 * 1024

/** Returns the visible links of HTML. */
export const linksOf = (html: string): ReadonlyArray<Link> =>
  /<a(?:rea)?[\s/]/i.test(html) ? read(html.slice(0, searchedAtMost), { targets: false }).links : []

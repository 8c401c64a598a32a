/**
 * Sanitizes a caller's HTML into a fragment that cannot affect anything around it. Every element is closed, in an order
 * that browsers do not rearrange, and only elements and attributes for text, tables and images are kept. Style sheets,
 * scripts, forms, frames, comments, classes, ids, and misplaced elements for which a browser would close others are
 * removed, together with content that is never shown. Other text is kept.
 *
 * The fragment is placed in a table cell, and the disclosure after the table. Browsers reset unclosed formatting at the
 * end of a cell, and end tags in it close nothing outside (WHATWG HTML, "has an element in table scope"), so even what
 * this module misses cannot reach the disclosure.
 */
import { Parser } from "htmlparser2"
import { Blanks, ofMarkup } from "./WhitespaceLimit.ts"
import * as Colors from "@svc/cluster/html/Colors"
import * as InlineStyle from "./InlineStyle.ts"
import * as TextVisibility from "@svc/cluster/html/TextVisibility"

const wordSet = (text: string) => new Set(text.split(" "))

const allowed = wordSet(
  "a abbr address article aside b bdi big blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q s samp section small span strike strong sub sup table tbody td tfoot th thead time tr tt u ul var wbr",
)
const voidElements = wordSet("br col hr img wbr")
/** Elements whose content is not shown. Their end is found as browsers find it. */
const removedWithContent = wordSet(
  "script style title template textarea select iframe object embed svg math noframes noembed xmp plaintext audio video canvas applet frameset datalist",
)

/** Elements that are only allowed in these parents. */
const parents: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["caption", wordSet("table")],
  ["colgroup", wordSet("table")],
  ["col", wordSet("table colgroup")],
  ["tbody", wordSet("table")],
  ["thead", wordSet("table")],
  ["tfoot", wordSet("table")],
  ["tr", wordSet("table tbody thead tfoot")],
  ["td", wordSet("tr")],
  ["th", wordSet("tr")],
  ["li", wordSet("ul ol")],
  ["dt", wordSet("dl")],
  ["dd", wordSet("dl")],
])
/** Elements that only contain the elements above. */
const structural = wordSet("table tbody thead tfoot tr colgroup")
/** Elements that browsers do not nest: they would close the outer one. */
const notNested = wordSet("a")

/** The height in lines of elements without text. A row has the padding of its cells. */
const tall: ReadonlyMap<string, number> = new Map([
  ["br", 1],
  ["hr", 1],
  ["li", 1],
  ["tr", 2],
])

const depthAtMost = 100
const digits = (most: number) => new RegExp(`^\\d{1,${most}}$`)
const keyword = /^[a-z]{1,20}$/i
/** Accepts colours as attributes write them. Browsers turn any other value into some colour. */
const isColor = (value: string) =>
  /^(?:#[0-9a-f]{3}|#[0-9a-f]{6}|[a-z]+)$/i.test(value) && Colors.parse(value.toLowerCase()) !== undefined

const attributes: Readonly<Record<string, (value: string, name: string) => boolean>> = {
  align: (value) => keyword.test(value),
  valign: (value) => keyword.test(value),
  dir: (value) => /^(?:ltr|rtl|auto)$/i.test(value),
  lang: (value) => /^[A-Za-z0-9-]{1,35}$/.test(value),
  title: (value) => value.length <= 500,
  alt: (value) => value.length <= 500,
  bgcolor: isColor,
  color: isColor,
  face: (value) => /^[\w\s,'"-]{1,200}$/.test(value),
  size: (value, name) => name === "font" && /^[+-]?[1-7]$/.test(value),
  border: (value) => digits(2).test(value) && Number(value) <= 20,
  cellpadding: (value) => digits(2).test(value) && Number(value) <= 20,
  cellspacing: (value) => digits(2).test(value) && Number(value) <= 20,
  colspan: (value) => digits(2).test(value),
  rowspan: (value) => digits(2).test(value),
  width: (value) => /^(?:\d{1,3}|1\d{3}|100%|\d{1,2}%)$/.test(value),
  height: (value, name) => name === "img" && /^(?:\d{1,3}|1[01]\d\d)$/.test(value),
  start: (value) => digits(5).test(value),
  type: (value, name) =>
    ((name === "ol" || name === "ul") && keyword.test(value)) || (name === "blockquote" && value === "cite"),
  href: (value, name) => name === "a" && /^(?:https?:\/\/|mailto:|tel:)\S{1,2000}$/i.test(value),
  src: (value, name) => name === "img" && /^https?:\/\/\S{1,2000}$/i.test(value),
}

/** The height in pixels of an image without a stated height, and of a line. */
const pixels = { image: 150, line: 20 }

const linesOf = (name: string, given: Readonly<Record<string, string>>): number =>
  name === "img"
    ? Number(/^\d{1,4}$/.exec(given["height"] ?? "")?.[0] ?? pixels.image) / pixels.line
    : (tall.get(name) ?? 0)

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
const quoted = (text: string) => escaped(text).replaceAll('"', "&quot;")

/** The images of a message by the id that `cid:` names (RFC 2392), and those that the HTML shows. */
interface Images {
  readonly known: ReadonlySet<string>
  readonly shown: Set<string>
}

/** Returns the id of a source, or undefined if it is not an image of the message. */
export const imageOf = (source: string, { known }: Pick<Images, "known">): string | undefined => {
  const [, written] = /^cid:(\S{1,250})$/i.exec(source) ?? []
  if (written === undefined) return undefined
  if (known.has(written)) return written
  try {
    const id = decodeURIComponent(written)
    return known.has(id) ? id : undefined
  } catch {
    return undefined
  }
}

class Writer {
  private readonly pieces: Array<string> = []
  /** Open elements of the input; undefined for removed ones. */
  private readonly stack: Array<string | undefined> = []
  private readonly open: Array<string> = []
  /** The visibility of text in each open element. */
  private readonly visibilities: Array<TextVisibility.TextVisibility> = []
  private readonly blanks: Blanks
  private readonly images: Images
  /** The nesting depth within an element whose content is removed. */
  private skipping = 0
  /** The filtered style of the last element. */
  private style = ""

  constructor(blanks: Blanks, images: Images) {
    this.blanks = blanks
    this.images = images
  }

  private opens(name: string): boolean {
    const parent = this.open.at(-1)
    if (!allowed.has(name) || this.open.length >= depthAtMost) return false
    const places = parents.get(name)
    if (places !== undefined) return parent !== undefined && places.has(parent)
    if (parent !== undefined && structural.has(parent)) return false
    return !(notNested.has(name) && this.open.includes(name))
  }

  private visibility(): TextVisibility.TextVisibility {
    return this.visibilities.at(-1) ?? TextVisibility.open
  }

  private attributesOf(name: string, given: Readonly<Record<string, string>>): string {
    let text = ""
    this.style = ""
    for (const [attribute, value] of Object.entries(given)) {
      const key = attribute.toLowerCase()
      if (key === "style") {
        const { style, spaced } = InlineStyle.filter(value, true)
        const fitting = spaced && !this.blanks.take(4) ? InlineStyle.filter(value, false).style : style
        this.style = fitting
        if (fitting !== "") text += ` style="${quoted(fitting)}"`
      } else if (key === "src" && name === "img" && imageOf(value.trim(), this.images) !== undefined) {
        const image = imageOf(value.trim(), this.images)!
        this.images.shown.add(image)
        text += ` src="cid:${quoted(image)}"`
      } else if (Object.hasOwn(attributes, key) && attributes[key]!(value.trim(), name)) {
        text += ` ${key}="${quoted(value.trim())}"`
      }
    }
    return text
  }

  opentag(name: string, given: Readonly<Record<string, string>>): void {
    if (this.skipping > 0 || removedWithContent.has(name)) {
      this.skipping++
      return
    }
    if (!this.blanks.take(linesOf(name, given)) || !this.opens(name)) {
      this.stack.push(undefined)
      return
    }
    this.pieces.push(`<${name}${this.attributesOf(name, given)}>`)
    if (voidElements.has(name)) this.stack.push(undefined)
    else {
      this.stack.push(name)
      this.open.push(name)
      this.visibilities.push(
        TextVisibility.within(this.visibility(), name, this.style, {
          color: given["color"],
          bgcolor: given["bgcolor"],
        }),
      )
    }
  }

  closetag(): void {
    if (this.skipping > 0) {
      this.skipping--
      return
    }
    const name = this.stack.pop()
    if (name === undefined) return
    this.open.pop()
    this.visibilities.pop()
    this.pieces.push(`</${name}>`)
  }

  text(raw: string): void {
    if (this.skipping > 0) return
    const text = this.blanks.text(ofMarkup(raw), TextVisibility.isSeen(this.visibility()))
    if (text !== "") this.pieces.push(escaped(text))
  }

  finish(): string {
    return this.pieces.join("")
  }
}

/** The maximum nesting: beyond it browsers show something else, and parsing becomes slow. */
const nestedAtMost = 500

const none: Images = { known: new Set(), shown: new Set() }

/** Sanitizes HTML. Returns undefined if it is nested too deeply. */
const fragment = (html: string, images: Images = none, blanks = new Blanks()): string | undefined => {
  const out = new Writer(blanks, images)
  let text = ""
  let depth = 0
  let isTooDeep = false
  const flush = () => {
    if (text !== "") out.text(text)
    text = ""
  }
  const parser = new Parser(
    {
      onopentag: (name, given) => {
        flush()
        out.opentag(name, given)
        if (++depth <= nestedAtMost) return
        isTooDeep = true
        parser.pause()
      },
      onclosetag: () => {
        flush()
        out.closetag()
        depth--
      },
      ontext: (part) => {
        text += part
      },
    },
    { decodeEntities: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
  )
  parser.write(html)
  if (isTooDeep) return undefined
  parser.end()
  flush()
  return out.finish()
}

/** Sanitizes several fragments with a shared limit on white space. */
export const fragments = (htmls: ReadonlyArray<string>, images: Images): string | undefined => {
  const blanks = new Blanks()
  const all: Array<string> = []
  for (const html of htmls) {
    const one = fragment(html, images, blanks)
    if (one === undefined) return undefined
    all.push(one)
  }
  return all.join("\n")
}

export { escaped }

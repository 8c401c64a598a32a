/**
 * A caller's HTML as a fragment that stays where it is put: every element closed, in an order that a browser does not
 * rearrange, of elements and attributes that show text, tables and images. Whatever could reach beyond it is left out:
 * style sheets, scripts, forms, frames, comments, classes and ids, and elements in places where a browser would close
 * others for them. The words of the caller stay, apart from what was never to be seen.
 *
 * It stands in a cell of a table, and the disclosure behind that table. A browser forgets unclosed formatting at the end of
 * a cell, and no end tag in it closes anything outside it (WHATWG HTML, "has an element in table scope"), so even what is
 * overlooked here has no way to the disclosure.
 */
import { Parser } from "htmlparser2"
import { Blanks, ofMarkup } from "./WhitespaceLimit.ts"
import * as Colors from "@svc/cluster/html/Colors"
import * as InlineStyle from "./InlineStyle.ts"
import * as TextVisibility from "@svc/cluster/html/TextVisibility"

const words = (text: string) => new Set(text.split(" "))

const allowed = words(
  "a abbr address article aside b bdi big blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q s samp section small span strike strong sub sup table tbody td tfoot th thead time tr tt u ul var wbr",
)
const empty = words("br col hr img wbr")
/** Elements whose content is not for a reader. Their end is found as a browser finds it. */
const withContent = words(
  "script style title template textarea select iframe object embed svg math noframes noembed xmp plaintext audio video canvas applet frameset datalist",
)

/** Elements that may stand nowhere but in these. */
const parents: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["caption", words("table")],
  ["colgroup", words("table")],
  ["col", words("table colgroup")],
  ["tbody", words("table")],
  ["thead", words("table")],
  ["tfoot", words("table")],
  ["tr", words("table tbody thead tfoot")],
  ["td", words("tr")],
  ["th", words("tr")],
  ["li", words("ul ol")],
  ["dt", words("dl")],
  ["dd", words("dl")],
])
/** Elements that nothing else may stand in. */
const structural = words("table tbody thead tfoot tr colgroup")
/** Elements that do not stand in one of their kind: a browser would end the outer one. */
const notNested = words("a")

/** Elements that are some lines high though nothing is written in them: a row has its cells' padding. */
const tall: ReadonlyMap<string, number> = new Map([
  ["br", 1],
  ["hr", 1],
  ["li", 1],
  ["tr", 2],
])

const depthAtMost = 100
const listed = (most: number) => new RegExp(`^\\d{1,${most}}$`)
const keyword = /^[a-z]{1,20}$/i
/** As attributes write it: browsers make something of anything else. */
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
  border: (value) => listed(2).test(value) && Number(value) <= 20,
  cellpadding: (value) => listed(2).test(value) && Number(value) <= 20,
  cellspacing: (value) => listed(2).test(value) && Number(value) <= 20,
  colspan: (value) => listed(2).test(value),
  rowspan: (value) => listed(2).test(value),
  width: (value) => /^(?:\d{1,3}|1\d{3}|100%|\d{1,2}%)$/.test(value),
  height: (value, name) => name === "img" && /^(?:\d{1,3}|1[01]\d\d)$/.test(value),
  start: (value) => listed(5).test(value),
  type: (value, name) =>
    ((name === "ol" || name === "ul") && keyword.test(value)) || (name === "blockquote" && value === "cite"),
  href: (value, name) => name === "a" && /^(?:https?:\/\/|mailto:|tel:)\S{1,2000}$/i.test(value),
  src: (value, name) => name === "img" && /^https?:\/\/\S{1,2000}$/i.test(value),
}

/** Height of an image of no stated height, and of a line, in pixels. */
const pixels = { image: 150, line: 20 }

const linesOf = (name: string, given: Readonly<Record<string, string>>): number =>
  name === "img"
    ? Number(/^\d{1,4}$/.exec(given["height"] ?? "")?.[0] ?? pixels.image) / pixels.line
    : (tall.get(name) ?? 0)

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
const quoted = (text: string) => escaped(text).replaceAll('"', "&quot;")

/** Images that come with the message, by the id that `cid:` names (RFC 2392), and those that were shown. */
export interface Images {
  readonly known: ReadonlySet<string>
  readonly shown: Set<string>
}

/** The id that a source names; undefined where it is no image of the message. */
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
  /** Elements that are open in what is written; undefined for one that was left out. */
  private readonly stack: Array<string | undefined> = []
  private readonly open: Array<string> = []
  /** What is seen in each of the open ones. */
  private readonly sights: Array<TextVisibility.TextVisibility> = []
  private readonly blanks: Blanks
  private readonly images: Images
  /** The element whose content is left out, and how often it is open within itself. */
  private skipping = 0
  /** Of the element that was written last. */
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

  private sight(): TextVisibility.TextVisibility {
    return this.sights.at(-1) ?? TextVisibility.open
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
    if (this.skipping > 0 || withContent.has(name)) {
      this.skipping++
      return
    }
    if (!this.blanks.take(linesOf(name, given)) || !this.opens(name)) {
      this.stack.push(undefined)
      return
    }
    this.pieces.push(`<${name}${this.attributesOf(name, given)}>`)
    if (empty.has(name)) this.stack.push(undefined)
    else {
      this.stack.push(name)
      this.open.push(name)
      this.sights.push(
        TextVisibility.within(this.sight(), name, this.style, { color: given["color"], bgcolor: given["bgcolor"] }),
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
    this.sights.pop()
    this.pieces.push(`</${name}>`)
  }

  text(raw: string): void {
    if (this.skipping > 0) return
    const text = this.blanks.text(ofMarkup(raw), TextVisibility.isSeen(this.sight()))
    if (text !== "") this.pieces.push(escaped(text))
  }

  finish(): string {
    return this.pieces.join("")
  }
}

/** Elements within one another, beyond which a browser shows something else than what is written, and a parser crawls. */
const nestedAtMost = 500

const none: Images = { known: new Set(), shown: new Set() }

/** The fragment; undefined where elements are nested beyond all measure. */
export const fragment = (html: string, images: Images = none, blanks = new Blanks()): string | undefined => {
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

/** Several, one below the other; what is blank is counted over all of them. */
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

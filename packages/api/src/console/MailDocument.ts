/**
 * Sanitizes the HTML of a message for a frame. The document's policy and the sandbox prevent scripts and requests; this
 * module handles what they cannot: every link goes through the page that shows its destination, and only allowed elements
 * and attributes remain. The output is written in chunks, so that no message blocks the event loop.
 */
import { frameLimits } from "@svc/domain/mail/FrameLimits"
import { Effect } from "effect"
import { Tokenizer } from "htmlparser2"
import { escape } from "../pages/Page.ts"

/** Characters parsed at a time. */
const portion = 16 * 1024

const words = (text: string) => new Set(text.split(" "))

const elements = words(
  "a abbr address article aside b bdi bdo big blockquote body br caption center cite code col colgroup dd del details dfn dir div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark menu nav ol p pre q s samp section small span strike strong style sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr",
)
const empty = words("br col hr img wbr")
/** Elements whose content is dropped. They do not nest, so the first end tag closes them. */
const silent = words("script title template noscript iframe object embed svg math select textarea")
const attributes = words(
  "align alt bgcolor border cellpadding cellspacing class color cols colspan dir face height hspace id lang nowrap rowspan size span start style title type valign vspace width",
)

const schemes = words("http: https: mailto:")

interface Options {
  /** Returns the address at which the service fetches a remote image, if the reader asked for them. */
  readonly remote: ((url: string) => string) | undefined
  /** Embedded images as `data:` URLs by Content-ID. */
  readonly pictures: ReadonlyMap<string, string>
  /** Returns the address of the page that links to the destination. */
  readonly leave: (to: string) => string
}

const targetOf = (href: string | undefined): string | undefined => {
  const url = href === undefined ? null : URL.parse(href.trim())
  return url !== null && schemes.has(url.protocol) && url.href.length <= frameLimits.address ? url.href : undefined
}

/** Returns the embedded image of a `cid:` URL (RFC 2392). */
const enclosedOf = (src: string, pictures: ReadonlyMap<string, string>): string | undefined => {
  try {
    return pictures.get(decodeURIComponent(src.slice("cid:".length)))
  } catch {
    return undefined
  }
}

const pictureOf = (src: string | undefined, { remote, pictures }: Options): string | undefined => {
  if (src === undefined) return undefined
  if (/^cid:/i.test(src)) return enclosedOf(src, pictures)
  const inline = /^data:image\/(?:png|jpeg|gif|webp);base64,/.exec(src)
  // One pattern for the whole would backtrack over possibly millions of characters.
  if (inline !== null && !/[^A-Za-z0-9+/=\s]/.test(src.slice(inline[0].length))) return src
  const url = URL.parse(src.trim())
  return url !== null && /^https?:$/.test(url.protocol) && url.href.length <= frameLimits.address
    ? remote?.(url.href)
    : undefined
}

const style =
  "html,body{height:auto!important;min-height:0!important}body{margin:16px;font:14px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}img{max-width:100%;height:auto}table{max-width:100%}pre{white-space:pre-wrap}"
const lightStyle = "body{color:#1a1a1a;background:#fff}"
const darkStyle =
  ":root{color-scheme:light dark}body{color:light-dark(#1a1a1a,#e8e8ea);background:light-dark(#fff,#1b1c20)}"

/** The beginning of a message in which its author declares color schemes. */
const declaredWithin = 200_000

/** Whether the author says that the message can be shown on a dark ground. */
export const allowsDark = (html: string): boolean => {
  const start = html.slice(0, declaredWithin)
  return (
    /<meta\b[^>]{0,200}\b(?:supported-)?color-schemes?\b[^>]{0,200}\bdark\b/i.test(start) ||
    /\bprefers-color-scheme\s{0,9}:\s{0,9}dark\b/i.test(start) ||
    /\bcolor-scheme\s{0,9}:[^;}<]{0,40}\bdark\b/i.test(start)
  )
}

const headOf = (html: string) => {
  const isDark = allowsDark(html)
  const scheme = isDark ? "light dark" : "light"
  return `<!doctype html><html><head><meta charset="utf-8"><meta name="color-scheme" content="${scheme}"><title>Mail</title><style>${style}${isDark ? darkStyle : lightStyle}</style></head><body>`
}

/** The maximum number of attributes considered per element. */
const attributesAtMost = 60

/** Writes allowed content tag by tag while parsing. No tree is built, so nesting costs nothing. */
const writer = (html: string, options: Options) => {
  const out: Array<string> = []
  let links = 0
  let pictured = 0
  let remote = 0
  let name = ""
  let closing = false
  let attribute = ""
  let value = ""
  let given = new Map<string, string>()
  /** The element whose content is being dropped. */
  let within: string | undefined
  let inStyle = false

  const kept = () => {
    const texts = [...given].flatMap(([attribute, value]) =>
      attributes.has(attribute) ? [` ${attribute}="${escape(value)}"`] : [],
    )
    if (name === "a") {
      const to = links < frameLimits.links ? targetOf(given.get("href")) : undefined
      if (to !== undefined) {
        links++
        texts.push(` href="${escape(options.leave(to))}" target="_blank" rel="noopener noreferrer"`)
      }
    }
    if (name === "img") {
      const src = pictureOf(
        given.get("src"),
        remote < frameLimits.remoteImages ? options : { ...options, remote: undefined },
      )
      if (src !== undefined && !src.startsWith("data:")) remote++
      pictured += src?.length ?? 0
      // A data: URL needs no escaping and may be long.
      if (src !== undefined && pictured <= frameLimits.pictures)
        texts.push(` src="${src.startsWith("data:") ? src : escape(src)}"`)
    }
    return texts.join("")
  }
  const open = () => {
    if (closing || within !== undefined) return
    if (silent.has(name)) within = name
    else if (elements.has(name)) {
      out.push(`<${name === "body" ? "div" : name}${kept()}>`)
      inStyle = name === "style"
    }
  }
  const close = (tag: string) => {
    if (within !== undefined) {
      if (tag === within) within = undefined
    } else if (elements.has(tag) && !empty.has(tag)) {
      if (tag === "style") inStyle = false
      out.push(`</${tag === "body" ? "div" : tag}>`)
    }
  }
  /** Style content cannot be escaped, so it must not contain an end tag. */
  const text = (piece: string) => {
    if (within === undefined) out.push(inStyle ? piece.replaceAll("<", "") : escape(piece))
  }

  const tokenizer = new Tokenizer(
    { xmlMode: false, decodeEntities: true },
    {
      ontext: (start, end) => text(html.slice(start, end)),
      ontextentity: (code) => text(String.fromCodePoint(code)),
      onopentagname: (start, end) => {
        name = html.slice(start, Math.min(end, start + 20)).toLowerCase()
        closing = false
        given = new Map()
      },
      onattribname: (start, end) => {
        attribute = html.slice(start, Math.min(end, start + 20)).toLowerCase()
        value = ""
      },
      onattribdata: (start, end) => (value += html.slice(start, end)),
      onattribentity: (code) => (value += String.fromCodePoint(code)),
      onattribend: () => {
        if (given.size < attributesAtMost && !given.has(attribute)) given.set(attribute, value)
      },
      onopentagend: open,
      onselfclosingtag: () => {
        open()
        // A void element, whatever its name.
        if (within === name) within = undefined
      },
      onclosetag: (start, end) => {
        closing = true
        close(html.slice(start, Math.min(end, start + 20)).toLowerCase())
      },
      oncdata: () => {},
      oncomment: () => {},
      ondeclaration: () => {},
      onprocessinginstruction: () => {},
      onend: () => {},
    },
  )
  return { tokenizer, written: () => out.join("") }
}

export const mailDocument = (html: string, options: Options): Effect.Effect<string> =>
  Effect.gen(function* () {
    const shown = html.slice(0, frameLimits.html)
    const { tokenizer, written } = writer(shown, options)
    for (let at = 0; at < shown.length; at += portion) {
      tokenizer.write(shown.slice(at, at + portion))
      yield* Effect.yieldNow
    }
    tokenizer.end()
    const rest = html.length > frameLimits.html ? "<hr><p>…</p>" : ""
    return `${headOf(html)}${written()}${rest}</body></html>`
  })

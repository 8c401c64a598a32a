/** Parses the items of FETCH (RFC 9051 section 6.4.5 and the supported extensions) and their names in the response. */
import { Malformed, type Reader } from "./Reader.ts"

/** A section of a message: a part number and which of its bytes. */
export interface Section {
  readonly part: ReadonlyArray<number>
  readonly what: "all" | "HEADER" | "HEADER.FIELDS" | "HEADER.FIELDS.NOT" | "TEXT" | "MIME"
  /** Lower case. */
  readonly fields: ReadonlyArray<string>
}

/** A byte range. Some clients send `<4096>` without a count, which means everything from there on. */
export interface Partial {
  readonly from: number
  readonly count: number
}

export type FetchItem =
  | {
      readonly _tag: "Known"
      readonly name: (typeof known)[number]
      /** PREVIEW (LAZY). */
      readonly lazy?: boolean
    }
  | {
      readonly _tag: "Section"
      readonly section: Section
      /** The name of the item in the response. */
      readonly label: string
      /** Whether fetching it leaves the message unseen. */
      readonly peek: boolean
      readonly partial?: Partial | undefined
      /** For BINARY: the decoded content, or only its size. */
      readonly decoded?: "content" | "size"
    }

const known = [
  "FLAGS",
  "UID",
  "INTERNALDATE",
  "ENVELOPE",
  "BODY",
  "BODYSTRUCTURE",
  "RFC822.SIZE",
  "MODSEQ",
  "EMAILID",
  "THREADID",
  "PREVIEW",
] as const

const isKnown = (name: string): name is (typeof known)[number] => known.some((one) => one === name)

const named = (name: (typeof known)[number]): FetchItem => ({ _tag: "Known", name })

const macros: Readonly<Record<string, ReadonlyArray<FetchItem>>> = {
  FAST: [named("FLAGS"), named("INTERNALDATE"), named("RFC822.SIZE")],
  ALL: [named("FLAGS"), named("INTERNALDATE"), named("RFC822.SIZE"), named("ENVELOPE")],
  FULL: [named("FLAGS"), named("INTERNALDATE"), named("RFC822.SIZE"), named("ENVELOPE"), named("BODY")],
}

const whole: Section = { part: [], what: "all", fields: [] }

/** Legacy RFC 822 items and their equivalents. */
const old: Readonly<Record<string, FetchItem>> = {
  RFC822: { _tag: "Section", section: whole, label: "RFC822", peek: false },
  "RFC822.HEADER": { _tag: "Section", section: { ...whole, what: "HEADER" }, label: "RFC822.HEADER", peek: true },
  "RFC822.TEXT": { _tag: "Section", section: { ...whole, what: "TEXT" }, label: "RFC822.TEXT", peek: false },
}

const nameChars = /[^A-Za-z0-9.]/

/** Maximum depth of a part number. */
const deepest = 50

const section = (reader: Reader): Section => {
  reader.expect("[")
  const part: Array<number> = []
  while (/\d/.test(reader.peek)) {
    const number = reader.number()
    if (number === 0 || part.length >= deepest) throw new Malformed("No such part")
    part.push(number)
    if (!reader.takes(".")) break
    if (!/[\dA-Za-z]/.test(reader.peek)) throw new Malformed("Expected a part")
  }
  const what = reader.upTo(/[^A-Za-z.]/).toUpperCase()
  let fields: ReadonlyArray<string> = []
  if (what === "HEADER.FIELDS" || what === "HEADER.FIELDS.NOT") {
    reader.space()
    fields = reader.list(() => reader.astring().toString("latin1").toLowerCase())
  }
  reader.expect("]")
  switch (what) {
    case "":
      return { part, what: "all", fields }
    case "MIME":
      if (part.length === 0) throw new Malformed("MIME requires a part number")
      return { part, what, fields }
    case "HEADER":
    case "HEADER.FIELDS":
    case "HEADER.FIELDS.NOT":
    case "TEXT":
      return { part, what, fields }
    default:
      throw new Malformed("Unknown section")
  }
}

const partial = (reader: Reader): Partial | undefined => {
  if (!reader.takes("<")) return undefined
  const from = reader.number()
  const count = reader.takes(".") ? reader.number() : Number.MAX_SAFE_INTEGER
  reader.expect(">")
  if (count === 0) throw new Malformed("A partial fetch must be at least one byte")
  return { from, count }
}

/** Formats a field name for the response; a name that is not an atom is quoted. */
const fieldName = (name: string) =>
  /^[!#$&'+,./0-9:;<=>?@A-Z^_`a-z|~-]+$/.test(name) ? name.toUpperCase() : `"${name.replace(/["\\]/g, "\\$&")}"`

const labelOf = (name: string, { part, what, fields }: Section, slice: Partial | undefined) => {
  const number = part.join(".")
  const list = fields.length === 0 ? "" : ` (${fields.map(fieldName).join(" ")})`
  const of = what === "all" ? number : `${number}${number === "" ? "" : "."}${what}${list}`
  return `${name}[${of}]${slice === undefined ? "" : `<${slice.from}>`}`
}

const item = (reader: Reader): FetchItem => {
  const name = reader.upTo(nameChars).toUpperCase()
  const old822 = Object.hasOwn(old, name) ? old[name] : undefined
  if (old822 !== undefined) return old822
  if ((name === "BODY" || name === "BODY.PEEK") && reader.peek === "[") {
    const of = section(reader)
    const slice = partial(reader)
    return {
      _tag: "Section",
      section: of,
      label: labelOf("BODY", of, slice),
      peek: name === "BODY.PEEK",
      partial: slice,
    }
  }
  if (name === "BINARY" || name === "BINARY.PEEK" || name === "BINARY.SIZE") {
    const of = section(reader)
    if (of.what !== "all") throw new Malformed("BINARY requires a part")
    const slice = name === "BINARY.SIZE" ? undefined : partial(reader)
    const size = name === "BINARY.SIZE"
    return {
      _tag: "Section",
      section: of,
      label: labelOf(size ? "BINARY.SIZE" : "BINARY", of, slice),
      peek: name !== "BINARY",
      partial: slice,
      decoded: size ? "size" : "content",
    }
  }
  if (!isKnown(name)) throw new Malformed(`Unknown item ${name}`)
  if (name === "PREVIEW" && reader.follows(" (LAZY)")) {
    reader.space()
    reader.list(() => reader.word())
    return { _tag: "Known", name, lazy: true }
  }
  return named(name)
}

/** Parses a macro, a single item or a list of items. */
export const items = (reader: Reader): ReadonlyArray<FetchItem> => {
  if (reader.peek === "(") return reader.list(() => item(reader))
  const start = reader.peek
  if (/[AF]/i.test(start)) {
    const name = reader.upTo(nameChars).toUpperCase()
    const macro = Object.hasOwn(macros, name) ? macros[name] : undefined
    if (macro !== undefined) return macro
    if (name === "FLAGS") return [named("FLAGS")]
    throw new Malformed(`Unknown item ${name}`)
  }
  return [item(reader)]
}

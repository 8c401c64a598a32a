/**
 * Extracts what a person wrote from the MIME structure of a mail program: a text, HTML, and files. Bodies are found at
 * any depth and concatenated in order. The structure itself is discarded (boundaries, encodings, character sets,
 * a second Content-Type), since readers may interpret it differently. Exactly the extracted content is sent and
 * covered by the disclosure.
 *
 * - Of alternatives the plain text and the richest HTML are taken. Other alternatives, such as an invitation, become
 * files.
 * - A missing form is generated: HTML from text, and text from HTML.
 * - Inline images stay in place. A forwarded message becomes a file, since its HTML is not sanitized.
 * - Signed and encrypted messages are refused: adding the disclosure would break the signature, and a person cannot
 * approve what they cannot read.
 */
import { fromHtml } from "@svc/cluster/html/PlainText"
import * as ContentId from "@svc/domain/mail/ContentId"
import * as Decode from "../mime/Decode.ts"
import { unwrap } from "../mime/Flowed.ts"
import { header } from "../mime/Header.ts"
import { limits as structure, type Part } from "../mime/Part.ts"
import * as WhitespaceLimit from "./WhitespaceLimit.ts"
import { type Enclosure, type Fault, faulty, fragmentOfText, typeOf } from "./MessageWriter.ts"

/** The maximum characters of the text and of the HTML, encoded bytes of one body, and number of files. */
export const limits = { characters: 1_000_000, bytes: 6 * 1024 * 1024, enclosures: 200 }

export interface Manuscript {
  readonly _tag: "Manuscript"
  /** Undefined if there is only HTML, or nothing. */
  readonly text: string | undefined
  /** Undefined if nothing was written as HTML. */
  readonly htmls: ReadonlyArray<string> | undefined
  readonly enclosures: ReadonlyArray<Enclosure>
}

/** A section of the body: plain text, HTML, or the same content in both. */
interface Run {
  readonly text: string | undefined
  readonly html: string | undefined
}

const refusalOf = (part: Part, isWhole: boolean): string | undefined => {
  if (part.type === "multipart/encrypted") return "Encrypted mail cannot carry the AI disclosure: send it unencrypted"
  if (part.type === "multipart/signed") return "Signed mail cannot carry the AI disclosure: send it unsigned"
  return isWhole && /^application\/(?:x-)?pkcs7-mime$/.test(part.type)
    ? "Signed or encrypted mail cannot carry the AI disclosure: send it unsigned and unencrypted"
    : undefined
}

/** Returns a parameter for a header field, if its value needs no quoting. */
const parameter = (part: Part, name: string, pattern: RegExp): string => {
  const value = part.parameters[name]
  return value !== undefined && pattern.test(value) ? `; ${name}=${value}` : ""
}

const contentTypeOf = (part: Part): string =>
  typeOf(part.type) +
  (part.type.startsWith("text/") ? parameter(part, "charset", /^[\w.:+-]{1,40}$/) : "") +
  (part.type === "text/calendar" ? parameter(part, "method", /^[A-Za-z]{1,20}$/) : "")

export const contentIdOf = (raw: Buffer, part: Part): string | undefined =>
  part.type.startsWith("image/") ? ContentId.ofField(header(raw, part.rows, "content-id")) : undefined

const filenameOf = ({ filename, type }: Part): string | null => {
  const shown = WhitespaceLimit.ofLine(Decode.clean(filename ?? ""))
    .slice(0, 200)
    .toWellFormed()
  if (shown !== "") return shown
  return type === "message/rfc822" ? "message.eml" : null
}

const enclosureOf = (raw: Buffer, part: Part): Enclosure => ({
  filename: filenameOf(part),
  contentType: contentTypeOf(part),
  content: Decode.bytes(raw, part),
  contentId: contentIdOf(raw, part),
})

class Reader {
  readonly #raw: Buffer
  readonly #root: Part
  readonly enclosed: Array<Part> = []
  fault: Fault | undefined
  /** The remaining characters of each kind. */
  #text = limits.characters
  #html = limits.characters
  #parts = 0

  constructor(raw: Buffer, root: Part) {
    this.#raw = raw
    this.#root = root
  }

  #fail(path: string, message: string): ReadonlyArray<Run> {
    this.fault ??= faulty(path, message)
    return []
  }

  /** The only part of a message is its body, whatever its file name. */
  #isBody(part: Part): boolean {
    const isText = part.type === "text/plain" || part.type === "text/html"
    return isText && part.disposition !== "attachment" && (part.filename === null || part === this.#root)
  }

  #decoded(part: Part): string | undefined {
    if (part.end - part.bodyStart > limits.bytes) return undefined
    const text = Decode.text(this.#raw, part, limits.bytes)
    if (part.type === "text/html") this.#html -= text.length
    else this.#text -= text.length
    return this.#html < 0 || this.#text < 0 ? undefined : text
  }

  #leaf(part: Part): ReadonlyArray<Run> {
    if (!this.#isBody(part)) {
      this.enclosed.push(part)
      return this.enclosed.length > limits.enclosures
        ? this.#fail("/attachments", `Expected at most ${limits.enclosures} files`)
        : []
    }
    const text = this.#decoded(part)
    if (text === undefined) {
      return this.#fail("/text", `Expected at most ${limits.characters} characters of text, and as many of HTML`)
    }
    if (part.type === "text/html") return [{ text: undefined, html: text }]
    const isFlowed = part.parameters["format"]?.toLowerCase() === "flowed"
    const plain = isFlowed ? unwrap(text, part.parameters["delsp"]?.toLowerCase() === "yes") : text
    return [{ text: plain, html: undefined }]
  }

  read(part: Part): ReadonlyArray<Run> {
    if (this.fault !== undefined) return []
    // The index stops at this number of parts, so further content would be lost.
    if (++this.#parts >= structure.parts) return this.#fail("/", `Expected fewer than ${structure.parts} parts`)
    const refusal = refusalOf(part, part === this.#root)
    if (refusal !== undefined) return this.#fail("/", refusal)
    if (!part.type.startsWith("multipart/")) return this.#leaf(part)
    if (part.parts.length === 0) return this.#fail("/", "The parts of the message cannot be separated")
    const children = part.parts.map((child) => this.read(child)).filter((runs) => runs.length > 0)
    return part.type === "multipart/alternative" ? this.#best(children) : children.flat()
  }

  /** Combines alternatives: the first non-empty plain text and the last rich one, which is the richest. */
  #best(children: ReadonlyArray<ReadonlyArray<Run>>): ReadonlyArray<Run> {
    const isRich = (runs: ReadonlyArray<Run>) => runs.some(({ html }) => html !== undefined)
    const plain = children.find((runs) => !isRich(runs) && runs.some(({ text = "" }) => text.trim() !== ""))
    const rich = children.findLast(isRich)
    if (rich === undefined || plain === undefined) return rich ?? plain ?? []
    return [{ text: textOf(plain), html: htmlsOf(rich).join("\n") }]
  }
}

const textOf = (runs: ReadonlyArray<Run>): string =>
  runs.map(({ text, html }) => text ?? fromHtml(html ?? "")).join("\n")

const htmlsOf = (runs: ReadonlyArray<Run>): ReadonlyArray<string> =>
  runs.map(({ text, html }) => html ?? fragmentOfText(text ?? ""))

export const read = (raw: Buffer, root: Part): Manuscript | Fault => {
  const reader = new Reader(raw, root)
  const runs = reader.read(root)
  if (reader.fault !== undefined) return reader.fault
  return {
    _tag: "Manuscript",
    text: runs.length > 0 && runs.every(({ text }) => text === undefined) ? undefined : textOf(runs),
    htmls: runs.some(({ html }) => html !== undefined) ? htmlsOf(runs) : undefined,
    enclosures: reader.enclosed.map((part) => enclosureOf(raw, part)),
  }
}

/**
 * Decodes the content of an incoming message. Parsing never fails, so no mail is lost to it. Everything of unbounded
 * length is truncated before it is decoded.
 */
import type { Attachment, Header, ParsedMail } from "@svc/domain/mail/Message"
import * as MessageIds from "@svc/domain/mail/MessageIdField"
import { searchText } from "@svc/domain/mail/SearchText"
import { addresses, limits } from "./Author.ts"
import * as Decode from "./mime/Decode.ts"
import { unwrap } from "./mime/Flowed.ts"
import { header, nameOf, type Row, valueOf } from "./mime/Header.ts"
import { index, type Part } from "./mime/Part.ts"
import { fromHtml } from "@svc/cluster/html/PlainText"
import * as Structure from "./mime/Structure.ts"

/** The maximum bytes of text, and of HTML, decoded from all parts together. The raw message has the rest. */
const bodyLimit = 2 * 1024 * 1024
const snippetLength = 200
/** The maximum characters of a subject. */
const subjectLimit = 8 * 1024

const isBody = (part: Part, type: string) =>
  part.type === type && part.disposition !== "attachment" && part.filename === null

const isMultipart = (part: Part) => part.type.startsWith("multipart/") && part.parts.length > 0

/** Returns whether a multipart has no parts because its boundary is missing. Its body is then read as plain text. */
const isUndivided = (root: Part) => root.type.startsWith("multipart/") && root.parts.length === 0

/** Returns the attachments, in the order of their index. An attached message is an attachment, not part of the body. */
export const attachmentsOf = (root: Part): ReadonlyArray<Part> => {
  const into: Array<Part> = []
  const collect = (part: Part) => {
    if (isMultipart(part)) part.parts.forEach(collect)
    else if (!isBody(part, "text/plain") && !isBody(part, "text/html")) into.push(part)
  }
  if (!isUndivided(root)) collect(root)
  return into
}

/** Decodes the bodies of a message, each once, within a shared limit for text and for HTML. */
const bodiesOf = (raw: Buffer, root: Part) => {
  const left = { plain: bodyLimit, html: bodyLimit }
  const html: Array<string> = []
  /** The text of each HTML body, for search, even if its plain alternative is shown. Converted lazily. */
  const htmlTexts: Array<() => string> = []

  const plain = (part: Part): string => {
    const text = Decode.text(raw, part, left.plain)
    left.plain -= Math.min(left.plain, part.end - part.bodyStart)
    return part.parameters["format"]?.toLowerCase() === "flowed"
      ? unwrap(text, part.parameters["delsp"]?.toLowerCase() === "yes")
      : text
  }
  const fromMarkup = (part: Part): (() => string) => {
    const markup = Decode.text(raw, part, left.html)
    left.html -= Math.min(left.html, part.end - part.bodyStart)
    html.push(markup)
    let text: string | undefined
    const words = () => (text ??= fromHtml(markup))
    htmlTexts.push(words)
    return words
  }

  /**
   * Returns the texts below a part, in order, and whether any was written as plain text. `named` includes inline parts
   * that have a file name.
   */
  const read = (part: Part, named: boolean): { texts: ReadonlyArray<() => string>; isPlain: boolean } => {
    const is = (type: string) =>
      isBody(part, type) || (named && part.type === type && part.disposition !== "attachment")
    if (isMultipart(part)) {
      const children = part.parts.map((child) => read(child, named)).filter(({ texts }) => texts.length > 0)
      if (part.type !== "multipart/alternative") {
        return { texts: children.flatMap(({ texts }) => texts), isPlain: children.some(({ isPlain }) => isPlain) }
      }
      // Chooses the plain text unless it is empty, otherwise the last alternative, which is the richest.
      const written = children.find(({ texts, isPlain }) => isPlain && texts.some((text) => text().trim() !== ""))
      return written ?? children.at(-1) ?? { texts: [], isPlain: false }
    }
    if (is("text/plain")) {
      const text = plain(part)
      return { texts: [() => text], isPlain: true }
    }
    if (is("text/html")) return { texts: [fromMarkup(part)], isPlain: false }
    return { texts: [], isPlain: false }
  }

  const bodies = isUndivided(root) ? [() => plain(root)] : read(root, false).texts
  // Some programs give a file name to the only text they send.
  const texts = bodies.length > 0 ? bodies : read(root, true).texts
  return {
    text: texts.length === 0 ? null : texts.map((text) => text()).join("\n"),
    html: html.length === 0 ? null : html.join("\n"),
    htmlTexts: () => htmlTexts.map((words) => words()),
  }
}

/** Returns the message ids of a field. A single word counts as an id, since some programs omit the brackets. */
const messageIds = (value: string | undefined): ReadonlyArray<string> => {
  const text = (value ?? "").slice(0, 32 * 1024)
  const ids = MessageIds.all(text).slice(0, 100).map(Decode.clean)
  const word = ids.length === 0 ? /^\s*<?([^<>\s]{1,498})>?\s*$/.exec(text)?.[1] : undefined
  return word === undefined ? ids : [`<${Decode.clean(word)}>`]
}

/** Collapses white space, but keeps single spaces. */
const collapse = (text: string) => text.replace(/[^\S ]\s*| \s+/g, " ").trim()

const headersOf = (raw: Buffer, rows: ReadonlyArray<Row>): ReadonlyArray<Header> =>
  rows
    .filter(({ key }) => key !== "")
    .map((row) => ({ name: Decode.clean(nameOf(raw, row)), value: Decode.clean(valueOf(raw, row)) }))

/** Reads the header only, which is little work for any message. */
const scanned = (raw: Buffer, rows: ReadonlyArray<Row>) => {
  const field = (name: string) => header(raw, rows, name)
  const [from, ...others] = addresses(field("from"))
  let left = limits.fields
  const people = (name: string) => {
    const value = field(name) ?? ""
    const read = addresses(value, left)
    left -= value.length
    return read
  }
  return {
    // Null if there are several `From` fields or addresses.
    from: rows.filter(({ key }) => key === "from").length === 1 && others.length === 0 ? (from ?? null) : null,
    to: people("to"),
    cc: people("cc"),
    bcc: people("bcc"),
    reply_to: people("reply-to"),
    subject: Decode.words((field("subject") ?? "").slice(0, subjectLimit)),
    message_id: messageIds(field("message-id"))[0] ?? null,
    in_reply_to: messageIds(field("in-reply-to"))[0] ?? null,
    references: messageIds(field("references")),
    headers: headersOf(raw, rows),
  }
}

/** Returns what a message shows, and lazily the text of its HTML. */
export const read = (raw: Buffer, root: Part = index(raw)) => {
  const { text, html, htmlTexts } = bodiesOf(raw, root)
  const attachments = attachmentsOf(root).map((part, at): Attachment => ({
    index: at,
    filename: part.filename === null ? null : Decode.line(part.filename),
    content_type: part.type,
    size: Decode.size(raw, part),
  }))
  const snippet = Decode.clean(collapse((text ?? "").slice(0, 2_000)).slice(0, snippetLength))
  return { shown: { ...scanned(raw, root.rows), snippet, attachments, text, html }, htmlTexts }
}

type Shown = ReturnType<typeof read>["shown"]

/** Returns the search text: the text shown, and the text of the HTML. */
export const searchTextOf = (shown: Shown, htmlTexts: ReadonlyArray<string>): string =>
  searchText(shown, [shown.text ?? "", ...htmlTexts.filter((one) => one !== shown.text)])

/** Parses a message. `root` is its structure, if already indexed. */
export const parse = (raw: Buffer, root: Part = index(raw)): ParsedMail => {
  const { shown, htmlTexts } = read(raw, root)
  return {
    ...shown,
    search_text: searchTextOf(shown, htmlTexts()),
    structure: JSON.stringify(Structure.make(raw, root)),
  }
}

/** Returns the subject and author of a message that could not be parsed. The raw bytes have the rest. */
export const headOnly = (raw: Buffer, rows: ReadonlyArray<Row>): ParsedMail => {
  const head = scanned(
    raw,
    rows.filter(({ key }) => key === "from" || key === "subject"),
  )
  const search_text = searchText({ ...head, attachments: [] }, [])
  return { ...head, snippet: "", attachments: [], text: null, html: null, search_text }
}

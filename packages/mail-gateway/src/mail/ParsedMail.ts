/**
 * What an incoming message says, decoded from its raw bytes. A parse never fails: mail is never lost to it. Whatever a
 * sender can make long is cut before it is decoded.
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

/** Bytes of text and of HTML that are decoded, all parts together; beyond it the raw message has the rest. */
const bodyLimit = 2 * 1024 * 1024
const snippetLength = 200
/** Characters of a subject. */
const subjectLimit = 8 * 1024

const isBody = (part: Part, type: string) =>
  part.type === type && part.disposition !== "attachment" && part.filename === null

const isMultipart = (part: Part) => part.type.startsWith("multipart/") && part.parts.length > 0

/** A message that says it has parts, and has none, since its boundary is missing: its words are read as they stand. */
const isUndivided = (root: Part) => root.type.startsWith("multipart/") && root.parts.length === 0

/** The parts that are attachments, in the order of their index. A message in a message is one, not our body. */
export const attachmentsOf = (root: Part): ReadonlyArray<Part> => {
  const into: Array<Part> = []
  const collect = (part: Part) => {
    if (isMultipart(part)) part.parts.forEach(collect)
    else if (!isBody(part, "text/plain") && !isBody(part, "text/html")) into.push(part)
  }
  if (!isUndivided(root)) collect(root)
  return into
}

/** The bodies of one message, each decoded once, within one budget for each kind. */
const bodiesOf = (raw: Buffer, root: Part) => {
  const left = { plain: bodyLimit, html: bodyLimit }
  const html: Array<string> = []
  /** What HTML says in words, also where its plain alternative is what is read: search finds it. Made where it is asked for. */
  const spoken: Array<() => string> = []

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
    spoken.push(words)
    return words
  }

  /**
   * The texts below a part in their order, and whether any of them was written as plain text; with `named` also those that
   * have a file's name and are to be shown.
   */
  const read = (part: Part, named: boolean): { texts: ReadonlyArray<() => string>; isPlain: boolean } => {
    const is = (type: string) =>
      isBody(part, type) || (named && part.type === type && part.disposition !== "attachment")
    if (isMultipart(part)) {
      const children = part.parts.map((child) => read(child, named)).filter(({ texts }) => texts.length > 0)
      if (part.type !== "multipart/alternative") {
        return { texts: children.flatMap(({ texts }) => texts), isPlain: children.some(({ isPlain }) => isPlain) }
      }
      // Alternatives say the same: the one in plain text, unless it is empty, else the best, which stands last.
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
  // Some programs name the one text they send as if it were a file.
  const texts = bodies.length > 0 ? bodies : read(root, true).texts
  return {
    text: texts.length === 0 ? null : texts.map((text) => text()).join("\n"),
    html: html.length === 0 ? null : html.join("\n"),
    spoken: () => spoken.map((words) => words()),
  }
}

/** The ids of a field; of one that is a single word, that, since some programs leave out brackets that others write. */
const messageIds = (value: string | undefined): ReadonlyArray<string> => {
  const text = (value ?? "").slice(0, 32 * 1024)
  const ids = MessageIds.all(text).slice(0, 100).map(Decode.clean)
  const word = ids.length === 0 ? /^\s*<?([^<>\s]{1,498})>?\s*$/.exec(text)?.[1] : undefined
  return word === undefined ? ids : [`<${Decode.clean(word)}>`]
}

/** Each run of white space one space; a lone space stays as it is. */
const fold = (text: string) => text.replace(/[^\S ]\s*| \s+/g, " ").trim()

const headersOf = (raw: Buffer, rows: ReadonlyArray<Row>): ReadonlyArray<Header> =>
  rows
    .filter(({ key }) => key !== "")
    .map((row) => ({ name: Decode.clean(nameOf(raw, row)), value: Decode.clean(valueOf(raw, row)) }))

/** What the header alone says, the bodies left aside: little work whatever the message is. */
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
    // Several fields, or several in one, leave nobody to show.
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

/** What a message shows; and what it says in HTML, which not everybody asks for. */
export const read = (raw: Buffer, root: Part = index(raw)) => {
  const { text, html, spoken } = bodiesOf(raw, root)
  const attachments = attachmentsOf(root).map((part, at): Attachment => ({
    index: at,
    filename: part.filename === null ? null : Decode.line(part.filename),
    content_type: part.type,
    size: Decode.size(raw, part),
  }))
  const snippet = Decode.clean(fold((text ?? "").slice(0, 2_000)).slice(0, snippetLength))
  return { shown: { ...scanned(raw, root.rows), snippet, attachments, text, html }, spoken }
}

type Shown = ReturnType<typeof read>["shown"]

/** The text that a message is found by: what it shows, and what its HTML says besides. */
export const found = (shown: Shown, spoken: ReadonlyArray<string>): string =>
  searchText(shown, [shown.text ?? "", ...spoken.filter((one) => one !== shown.text)])

/** `root` where the message was indexed already. */
export const parse = (raw: Buffer, root: Part = index(raw)): ParsedMail => {
  const { shown, spoken } = read(raw, root)
  return { ...shown, search_text: found(shown, spoken()), structure: JSON.stringify(Structure.make(raw, root)) }
}

/** What is kept of a message that could not be read: its subject and whom it is from; the raw bytes have the rest. */
export const headOnly = (raw: Buffer, rows: ReadonlyArray<Row>): ParsedMail => {
  const head = scanned(
    raw,
    rows.filter(({ key }) => key === "from" || key === "subject"),
  )
  const search_text = searchText({ ...head, attachments: [] }, [])
  return { ...head, snippet: "", attachments: [], text: null, html: null, search_text }
}

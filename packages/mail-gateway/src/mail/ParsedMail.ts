/** What an incoming message says, decoded from its raw bytes. A parse never fails: mail is never lost to it. */
import type { Address, Attachment, Header, ParsedMail } from "@svc/domain/mail/Message"
import addressparser from "nodemailer/lib/addressparser"
import * as Decode from "./mime/Decode.ts"
import { header, index, type Part } from "./mime/Part.ts"
import { fromHtml } from "./mime/PlainText.ts"

/** Bytes of a body that are decoded; beyond it the raw message has the rest. */
const bodyLimit = 2 * 1024 * 1024
/** Bytes of search text (mail.md "Parsing, storing, searching"). */
const searchLimit = 1024 * 1024
const snippetLength = 200
const addressLimit = 500

interface Leaves {
  text: Array<Part>
  html: Array<Part>
  attachments: Array<Part>
}

/** Bodies and attachments in the order of the message. A message in a message is an attachment, not our body. */
const collect = (part: Part, into: Leaves): Leaves => {
  if (part.type.startsWith("multipart/") && part.parts.length > 0) {
    for (const child of part.parts) collect(child, into)
  } else if (part.disposition !== "attachment" && part.filename === null && part.type === "text/plain")
    into.text.push(part)
  else if (part.disposition !== "attachment" && part.filename === null && part.type === "text/html")
    into.html.push(part)
  else into.attachments.push(part)
  return into
}

/** The parts that are attachments, in the order of their index. */
export const attachmentsOf = (root: Part): ReadonlyArray<Part> =>
  collect(root, { text: [], html: [], attachments: [] }).attachments

const addresses = (value: string | undefined): ReadonlyArray<Address> => {
  if (value === undefined) return []
  return addressparser(value.slice(0, 64 * 1024), { flatten: true })
    .filter((entry) => "address" in entry && typeof entry.address === "string" && entry.address !== "")
    .slice(0, addressLimit)
    .map((entry) => ({
      address: Decode.clean(entry.address ?? ""),
      name: entry.name === undefined || entry.name === "" ? null : Decode.words(entry.name),
    }))
}

const messageIds = (value: string | undefined): ReadonlyArray<string> =>
  Array.from((value ?? "").slice(0, 32 * 1024).matchAll(/<[^<>\s]{1,500}>/g), ([id]) => Decode.clean(id)).slice(0, 100)

const fold = (text: string) => text.replace(/\s+/g, " ").trim()

/** At most `limit` bytes of UTF-8, not cutting a character in half. */
const truncate = (text: string, limit: number): string =>
  text.length * 3 <= limit || Buffer.byteLength(text) <= limit
    ? text
    : Buffer.from(text)
        .subarray(0, limit)
        .toString("utf8")
        .replace(/\ufffd+$/, "")

export const parse = (raw: Buffer): ParsedMail => {
  const root = index(raw)
  const leaves = collect(root, { text: [], html: [], attachments: [] })
  const html = leaves.html.length === 0 ? null : leaves.html.map((part) => Decode.text(raw, part, bodyLimit)).join("\n")
  const htmlText = html === null ? null : fromHtml(html)
  const text =
    leaves.text.length > 0 ? leaves.text.map((part) => Decode.text(raw, part, bodyLimit)).join("\n") : htmlText
  const from = addresses(header(root, "from"))
  const to = addresses(header(root, "to"))
  const cc = addresses(header(root, "cc"))
  const bcc = addresses(header(root, "bcc"))
  const subject = Decode.words(header(root, "subject") ?? "")
  const headers = root.headers.map(({ name, value }): Header => ({
    name: Decode.clean(name),
    value: Decode.clean(value),
  }))
  const people = [...from, ...to, ...cc, ...bcc].flatMap(({ address, name }) =>
    name === null ? [address] : [address, name],
  )
  return {
    from: from.length === 1 ? from[0]! : null,
    to,
    cc,
    bcc,
    reply_to: addresses(header(root, "reply-to")),
    subject,
    snippet: Decode.clean(fold((text ?? "").slice(0, 2_000)).slice(0, snippetLength)),
    message_id: messageIds(header(root, "message-id"))[0] ?? null,
    in_reply_to: messageIds(header(root, "in-reply-to"))[0] ?? null,
    references: messageIds(header(root, "references")),
    attachments: leaves.attachments.map((part, at): Attachment => ({
      index: at,
      filename: part.filename === null ? null : Decode.clean(part.filename),
      content_type: part.type,
      size: Decode.bytes(raw, part).length,
    })),
    text,
    html,
    headers,
    search_text: truncate(
      [...people, subject, text ?? "", text === htmlText ? "" : (htmlText ?? "")].join("\n").toLowerCase(),
      searchLimit,
    ),
  }
}

/**
 * Converts drafts between the API and messages in mail programs. A draft is rendered without what is only added on
 * sending (the disclosure, an id). A message that a program filed as a draft is parsed into what the API stores, unless
 * that would lose something: signed or encrypted parts, HTML with missing images, or content beyond the limits of a
 * draft.
 */
import * as MessageIds from "@svc/domain/mail/MessageIdField"
import { NewMail } from "@svc/domain/mail/Sending"
import { Option, Schema } from "effect"
import MailComposer from "nodemailer/lib/mail-composer"
import * as Decode from "../mime/Decode.ts"
import { index, type Part } from "../mime/Part.ts"
import { attachmentsOf, parse } from "../ParsedMail.ts"
import { imageOf } from "./SanitizedHtml.ts"
import { contentIdOf } from "./ExtractedContent.ts"

/** The maximum bytes of such a message, and characters of the draft: those of a request. */
const maxBytes = 7 * 1024 * 1024

const oneLine = (text: string) => text.replace(/[\r\n]+/g, " ")

/** Returns the ids of the images that the HTML shows, in order; undefined for a missing image. */
const imagesOf = (html: string, known: ReadonlySet<string>): ReadonlyArray<string | undefined> =>
  Array.from(html.matchAll(/(?<=["'(=])cid:[^\s"'()<>]{1,250}/gi), ([source]) => imageOf(source, { known }))

/** `from` is the Identity's address, `at` the time of the last change. */
export interface Picture {
  readonly mail: NewMail
  readonly from: string
  readonly at: Date
  readonly messageId: string
}

export const write = ({ mail, from, at, messageId }: Picture): Promise<Buffer> => {
  const people = (addresses: ReadonlyArray<string> | undefined) => (addresses ?? []).map(oneLine).join(", ")
  const known = new Set((mail.attachments ?? []).flatMap(({ content_id }) => content_id ?? []))
  const shown = new Set(imagesOf(mail.html ?? "", known))
  const composer = new MailComposer({
    from,
    to: people(mail.to),
    cc: people(mail.cc),
    bcc: people(mail.bcc),
    subject: mail.subject ?? "",
    date: at,
    messageId,
    ...(mail.in_reply_to === undefined ? {} : { inReplyTo: mail.in_reply_to }),
    ...(mail.references === undefined ? {} : { references: [...mail.references] }),
    ...(mail.headers === undefined ? {} : { headers: { ...mail.headers } }),
    ...(mail.text === undefined && mail.html !== undefined ? {} : { text: mail.text ?? "" }),
    ...(mail.html === undefined ? {} : { html: mail.html }),
    textEncoding: "quoted-printable",
    attachments: (mail.attachments ?? []).map(({ filename, content_type, content_base64, content_id }) => ({
      filename,
      content: Buffer.from(content_base64, "base64"),
      contentType: /^(?:multipart|message)\//i.test(content_type) ? "application/octet-stream" : content_type,
      ...(content_id !== undefined && shown.has(content_id)
        ? { cid: content_id, contentDisposition: "inline" as const }
        : { contentDisposition: "attachment" as const }),
    })),
    newline: "windows",
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const message = composer.compile()
  // The author of a draft sees its Bcc recipients.
  message.keepBcc = true
  return message.build()
}

const isMail = Schema.decodeUnknownOption(NewMail)

const has = (part: Part, wanted: (part: Part) => boolean): boolean =>
  wanted(part) || part.parts.some((child) => has(child, wanted))

const unsupportedTypes = new Set([
  "multipart/signed",
  "multipart/encrypted",
  "message/rfc822",
  "message/delivery-status",
])

/** Returns the draft, or undefined if something would be lost. */
export const read = (raw: Buffer): NewMail | undefined => {
  if (raw.length > maxBytes) return undefined
  const root = index(raw)
  if (has(root, ({ type }) => unsupportedTypes.has(type))) return undefined
  const parsed = parse(raw, root)
  const enclosed = attachmentsOf(root).map((part) => ({ part, contentId: contentIdOf(raw, part) }))
  const known = new Set(enclosed.flatMap(({ contentId }) => contentId ?? []))
  const shown = new Set(imagesOf(parsed.html ?? "", known))
  if (shown.has(undefined)) return undefined
  const people = (all: ReadonlyArray<{ readonly address: string }>) => all.map(({ address }) => address)
  const isWritten = has(root, ({ type, disposition }) => type === "text/plain" && disposition !== "attachment")
  const ids = (all: ReadonlyArray<string>) => all.filter((id) => MessageIds.strict.test(id))
  const [inReplyTo] = ids(parsed.in_reply_to === null ? [] : [parsed.in_reply_to])
  const attachments = enclosed.map(({ part, contentId }, at) => ({
    filename: part.filename === null ? `attachment-${at + 1}` : Decode.clean(part.filename),
    content_type: part.type,
    content_base64: Decode.bytes(raw, part).toString("base64"),
    // The first attachment with an id is shown.
    ...(contentId !== undefined && shown.delete(contentId) ? { content_id: contentId } : {}),
  }))
  const references = ids(parsed.references)
  return Option.getOrUndefined(
    isMail({
      to: people(parsed.to),
      cc: people(parsed.cc),
      bcc: people(parsed.bcc),
      subject: parsed.subject,
      ...(parsed.text !== null && isWritten ? { text: parsed.text } : {}),
      ...(parsed.html === null ? {} : { html: parsed.html }),
      ...(inReplyTo === undefined ? {} : { in_reply_to: inReplyTo }),
      ...(references.length === 0 ? {} : { references }),
      ...(attachments.length === 0 ? {} : { attachments }),
    }),
  )
}

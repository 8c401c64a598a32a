/**
 * Writes a message that goes out: its bodies with the AI disclosure in both, its attachments, its header fields. The
 * library makes the MIME; it reads no files and no addresses of its own. What the caller sends can neither leave the
 * disclosure out nor keep a reader from it:
 *
 * - Text: it stands behind what was written, whose control characters and enormous white space are gone, and in which
 *   nothing begins a signature that mail programs fold away.
 * - HTML: it is our document around a fragment of the caller's ({@link Fragment}), which is shown in a cell that clips it.
 *   The disclosure comes behind, with colours and a layer of its own.
 * - Whichever body is missing is made of the other, so no reader has one without.
 * - Header fields: `Auto-Submitted` (RFC 3834) and `AI-Disclosure` are ours alone.
 *
 * Everything is 7 bit, so no server on the way has a reason to rewrite it, which would break its signature.
 */
import type { Composed, Letter } from "@svc/cluster/mail/sending/Composer"
import type { OutgoingAttachment } from "@svc/domain/mail/Sending"
import MailComposer from "nodemailer/lib/mail-composer"
import { parse } from "../ParsedMail.ts"
import { fromHtml } from "@svc/cluster/html/PlainText"
import * as Blank from "./Blank.ts"
import { escaped, fragment } from "./Fragment.ts"

/** What keeps a letter from being written; `path` is a JSON Pointer into the request. */
export type Written =
  | { readonly _tag: "Composed"; readonly composed: Composed }
  | { readonly _tag: "Faulty"; readonly path: string; readonly message: string }
  | { readonly _tag: "TooLarge"; readonly bytes: number }

/** Bytes of a whole message: what servers commonly take. */
const largest = 25 * 1024 * 1024

const lines = (text: string) => escaped(text).replaceAll(/\r?\n/g, "<br>\n")

/** What a text looks like as HTML: its line breaks and its indentation. */
const fragmentOfText = (text: string) => `<div style="white-space:pre-wrap">${escaped(text)}</div>`

const clipped =
  "overflow:hidden;overflow-wrap:anywhere;word-break:break-word;padding:0;text-align:left;vertical-align:top"
const disclosing =
  "position:relative;z-index:2147483647;clear:both;display:block;margin:16px 0 0 0;padding:10px 0 0 0;border-top:1px solid #767676;background-color:#ffffff;color:#222222;font:14px/1.5 Arial,Helvetica,sans-serif;text-align:left;text-decoration:none;text-transform:none;white-space:normal"

const documentOf = (inner: string, disclosure: string, language: string) =>
  `<!DOCTYPE html>
<html lang="${language}">
<head><meta charset="utf-8"></head>
<body>
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="table-layout:fixed;width:100%"><tbody><tr><td style="${clipped}"><div style="overflow:hidden">
${inner}
</div></td></tr></tbody></table>
<div style="${disclosing}">${lines(disclosure)}</div>
</body>
</html>
`

/** Behind what was written; a line of its own keeps the two apart. */
const textOf = (written: string, disclosure: string) => {
  const own = Blank.ofText(disclosure)
  return written === "" ? `${own}\n` : `${written}\n\n---\n${own}\n`
}

/** A media type that would be read as part of the message, or as another message, is just bytes. */
const typeOf = (type: string) =>
  /^(?:multipart|message)\//i.test(type) ? "application/octet-stream" : type.toLowerCase()

const attachmentOf = (attachment: OutgoingAttachment) => {
  const content = Buffer.from(attachment.content_base64, "base64")
  // The decoder skips what it does not know; then less comes out than went in.
  const digits = attachment.content_base64.replace(/=+$/, "").length
  return content.length !== Math.floor((digits * 3) / 4) || digits % 4 === 1
    ? undefined
    : {
        filename: attachment.filename.replace(/[\\/]/g, "_"),
        content,
        contentType: typeOf(attachment.content_type),
        contentDisposition: "attachment" as const,
      }
}

/** Names that are not spelled with one capital a part. */
const spellings: ReadonlyMap<string, string> = new Map(
  ["AI-Disclosure", "Message-ID", "MIME-Version", "Content-ID"].map((name) => [name.toLowerCase(), name]),
)
const spelled = (name: string) =>
  spellings.get(name.toLowerCase()) ?? name.toLowerCase().replace(/(?:^|-)[a-z]/g, (first) => first.toUpperCase())

const faulty = (path: string, message: string): Written => ({ _tag: "Faulty", path, message })

export const write = async (letter: Letter): Promise<Written> => {
  const written = letter.text === undefined ? undefined : Blank.ofText(letter.text)
  const inner = letter.html === undefined ? fragmentOfText(written ?? "") : fragment(letter.html)
  if (inner === undefined) return faulty("/html", "Elements are nested too deep")
  const text = textOf(written ?? Blank.ofText(fromHtml(inner)), letter.disclosure)
  const attachments: Array<NonNullable<ReturnType<typeof attachmentOf>>> = []
  for (const [index, given] of letter.attachments.entries()) {
    const attachment = attachmentOf(given)
    if (attachment === undefined) {
      return faulty(`/attachments/${index}/content_base64`, "Expected base64 (RFC 4648 section 4)")
    }
    attachments.push(attachment)
  }
  const composer = new MailComposer({
    from: letter.from,
    to: [...letter.to],
    cc: [...letter.cc],
    subject: letter.subject,
    date: letter.date,
    messageId: letter.messageId,
    ...(letter.inReplyTo === null ? {} : { inReplyTo: letter.inReplyTo }),
    ...(letter.references.length === 0 ? {} : { references: [...letter.references] }),
    headers: {
      ...letter.headers,
      "Auto-Submitted": letter.inReplyTo === null ? "auto-generated" : "auto-replied",
      "AI-Disclosure": "mode=ai-originated",
      "Content-Language": letter.language,
    },
    text,
    html: documentOf(inner, Blank.ofText(letter.disclosure), letter.language),
    textEncoding: "quoted-printable",
    attachments,
    newline: "windows",
    normalizeHeaderKey: spelled,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const raw = await composer.compile().build()
  if (raw.length > largest) return { _tag: "TooLarge", bytes: raw.length }
  const parsed = parse(raw)
  const composed: Composed = {
    content: {
      raw: new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength),
      text: parsed.text,
      html: parsed.html,
      headers: parsed.headers,
      search_text: parsed.search_text,
    },
    snippet: parsed.snippet,
    attachments: parsed.attachments,
  }
  return { _tag: "Composed", composed }
}

/**
 * Composes outgoing messages: bodies, both with the AI disclosure, attachments, and header fields. The library builds
 * the MIME structure and must not read files or URLs. A caller can neither omit nor hide the disclosure:
 *
 * - Text: it follows the caller's text, which is stripped of control characters and excessive white space, and precedes
 * a signature, which mail programs collapse.
 * - HTML: the caller's HTML is sanitized ({@link SanitizedHtml}) and clipped in a table cell of the service's document.
 * The disclosure follows with its own colours and layer.
 * - A missing body is generated from the other, so every reader sees it.
 * - Header fields: only the service sets `Auto-Submitted` (RFC 3834), `AI-Disclosure` and `Agent-Identity`.
 *
 * Everything is encoded as 7 bit, so that no server has a reason to re-encode it, which would break the signature.
 */
import { createHash } from "node:crypto"
import type { Composed, Letter } from "@svc/cluster/mail/sending/Composer"
import type { Address } from "@svc/domain/mail/Message"
import type { OutgoingAttachment } from "@svc/domain/mail/Sending"
import MailComposer from "nodemailer/lib/mail-composer"
import { read, searchTextOf } from "../ParsedMail.ts"
import { fromHtml } from "@svc/cluster/html/PlainText"
import * as WhitespaceLimit from "./WhitespaceLimit.ts"
import { escaped, fragments } from "./SanitizedHtml.ts"
import { render } from "./MimeRenderer.ts"

/** Why a message cannot be composed; `path` is a JSON Pointer into the request. */
export type Fault =
  | { readonly _tag: "Faulty"; readonly path: string; readonly message: string }
  | { readonly _tag: "TooLarge"; readonly bytes: number }

export type Written = { readonly _tag: "Composed"; readonly composed: Composed } | Fault

/** A file of a message. */
export interface Enclosure {
  readonly filename: string | null
  readonly contentType: string
  readonly content: Buffer
  /** The id by which the HTML references an image. */
  readonly contentId: string | undefined
}

/** A message before the service's own additions. Ids, dates and addresses are validated. */
export interface Draft {
  readonly messageId: string
  readonly date: Date | string
  readonly from: Address
  readonly to: ReadonlyArray<Address>
  readonly cc: ReadonlyArray<Address>
  readonly replyTo: ReadonlyArray<Address>
  readonly subject: string
  readonly text: string | undefined
  /** HTML documents or fragments, shown one below another. */
  readonly htmls: ReadonlyArray<string> | undefined
  readonly inReplyTo: string | null
  readonly references: ReadonlyArray<string>
  readonly headers: Readonly<Record<string, string>>
  readonly enclosures: ReadonlyArray<Enclosure>
  readonly did: string
  readonly disclosure: string
  readonly language: string
}

/** The maximum size of a message in bytes, which servers commonly accept. */
const maxBytes = 25 * 1024 * 1024

const lines = (text: string) => escaped(text).replaceAll(/\r?\n/g, "<br>\n")

/** Returns text as HTML that keeps line breaks and indentation. */
export const fragmentOfText = (text: string) => `<div style="white-space:pre-wrap">${escaped(text)}</div>`

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

/** Adds the disclosure after a separator line, above a signature. */
const textOf = (written: string, disclosure: string) => {
  const own = WhitespaceLimit.ofText(disclosure)
  const at = written.search(/^-- $/m)
  const [above, signature] = at < 0 ? [written, ""] : [written.slice(0, at).trimEnd(), `\n${written.slice(at)}\n`]
  return above === "" ? `${own}\n${signature}` : `${above}\n\n---\n${own}\n${signature}`
}

/** Types that would be parsed as part of the message, or as another message, become plain bytes. */
export const typeOf = (type: string) =>
  /^(?:multipart|message)\//i.test(type) ? "application/octet-stream" : type.toLowerCase()

const decoded = (base64: string): Buffer | undefined => {
  const content = Buffer.from(base64, "base64")
  // The decoder skips invalid characters, so its output would be shorter than expected.
  const digits = base64.replace(/=+$/, "").length
  return content.length !== Math.floor((digits * 3) / 4) || digits % 4 === 1 ? undefined : content
}

/** Decodes attachments and checks that image ids are unique. */
const enclosed = (attachments: ReadonlyArray<OutgoingAttachment>): ReadonlyArray<Enclosure> | Fault => {
  const enclosures: Array<Enclosure> = []
  const ids = new Set<string>()
  for (const [index, { filename, content_type, content_base64, content_id: contentId }] of attachments.entries()) {
    const content = decoded(content_base64)
    if (content === undefined) {
      return faulty(`/attachments/${index}/content_base64`, "Expected base64 (RFC 4648 section 4)")
    }
    const contentType = typeOf(content_type)
    if (contentId !== undefined) {
      const path = `/attachments/${index}/content_id`
      if (!contentType.startsWith("image/")) return faulty(path, "Expected content_id only on images")
      if (ids.has(contentId)) return faulty(path, "Expected a content_id that is unique among attachments")
      ids.add(contentId)
    }
    enclosures.push({ filename, content, contentType, contentId })
  }
  return enclosures
}

/** Field names that are not capitalized by word. */
const spellings: ReadonlyMap<string, string> = new Map(
  ["AI-Disclosure", "Message-ID", "MIME-Version", "Content-ID"].map((name) => [name.toLowerCase(), name]),
)
const capitalize = (name: string) =>
  spellings.get(name.toLowerCase()) ?? name.toLowerCase().replace(/(?:^|-)[a-z]/g, (first) => first.toUpperCase())

export const faulty = (path: string, message: string): Fault => ({ _tag: "Faulty", path, message })

const person = ({ address, name }: Address) => (name === null ? address : { address, name })

/** Images that the HTML shows are inline; everything else is an attachment. */
const attachmentOf = ({ filename, content, contentType, contentId }: Enclosure, shown: ReadonlySet<string>) => ({
  filename: filename === null ? (false as const) : filename.replace(/[\\/]/g, "_"),
  content,
  contentType,
  ...(contentId !== undefined && shown.has(contentId)
    ? { cid: contentId, contentDisposition: "inline" as const }
    : { contentDisposition: "attachment" as const }),
})

/** Composes a message with the disclosure. */
export const put = async (draft: Draft): Promise<Written> => {
  const written = draft.text === undefined ? undefined : WhitespaceLimit.ofText(draft.text)
  const shown = new Set<string>()
  const known = new Set(draft.enclosures.flatMap(({ contentId }) => (contentId === undefined ? [] : [contentId])))
  const inner = draft.htmls === undefined ? fragmentOfText(written ?? "") : fragments(draft.htmls, { known, shown })
  if (inner === undefined) return faulty("/html", "Elements are nested too deeply")
  const text = textOf(written ?? WhitespaceLimit.ofText(fromHtml(inner)), draft.disclosure)
  const composer = new MailComposer({
    from: person(draft.from),
    to: draft.to.map(person),
    cc: draft.cc.map(person),
    ...(draft.replyTo.length === 0 ? {} : { replyTo: draft.replyTo.map(person) }),
    subject: draft.subject,
    date: draft.date,
    messageId: draft.messageId,
    ...(draft.inReplyTo === null ? {} : { inReplyTo: draft.inReplyTo }),
    headers: {
      ...draft.headers,
      "Auto-Submitted": draft.inReplyTo === null ? "auto-generated" : "auto-replied",
      "AI-Disclosure": "mode=ai-originated",
      "Agent-Identity": draft.did,
      "Content-Language": draft.language,
    },
    text,
    html: documentOf(inner, WhitespaceLimit.ofText(draft.disclosure), draft.language),
    textEncoding: "quoted-printable",
    attachments: draft.enclosures.map((one) => attachmentOf(one, shown)),
    newline: "windows",
    normalizeHeaderKey: capitalize,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const raw = render(composer.compile(), draft.references)
  if (raw.length > maxBytes) return { _tag: "TooLarge", bytes: raw.length }
  const { shown: seen, htmlTexts } = read(raw)
  const composed: Composed = {
    content: {
      raw: new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength),
      text: seen.text,
      html: seen.html,
      headers: seen.headers,
      // HTML generated from the text adds nothing to search. Indexing it once halves the cost of storing the message.
      search_text: searchTextOf(seen, draft.htmls === undefined ? [] : htmlTexts()),
    },
    sha256: new Uint8Array(createHash("sha256").update(raw).digest()),
    snippet: seen.snippet,
    attachments: seen.attachments,
  }
  return { _tag: "Composed", composed }
}

const addressOnly = (address: string): Address => ({ address, name: null })

/** Composes a letter of the API. */
export const write = async (letter: Letter): Promise<Written> => {
  const enclosures = enclosed(letter.attachments)
  if ("_tag" in enclosures) return enclosures
  return put({
    ...letter,
    to: letter.to.map(addressOnly),
    cc: letter.cc.map(addressOnly),
    replyTo: [],
    htmls: letter.html === undefined ? undefined : [letter.html],
    enclosures,
  })
}

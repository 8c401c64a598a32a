/**
 * Rewrites a message of a mail program. No byte of its structure is kept, so nothing can hide or remove the disclosure,
 * and no two readers can interpret it differently. {@link ExtractedContent} extracts the content, {@link Letterhead}
 * the header, and both are composed like every message ({@link put}).
 */
import { createHash } from "node:crypto"
import type { SubmittedMessage as Given, Rewritten } from "@svc/cluster/mail/sending/Composer"
import { index } from "../mime/Part.ts"
import * as Letterhead from "./Letterhead.ts"
import * as ExtractedContent from "./ExtractedContent.ts"
import { type Fault, put } from "./MessageWriter.ts"

export type Outcome = { readonly _tag: "Rewritten"; readonly rewritten: Rewritten } | Fault

/**
 * Hashes the content independently of its encoding, since a program that retries may change the date and the
 * boundaries.
 */
const fingerprintOf = (
  { messageId, subject, inReplyTo }: Letterhead.Letterhead,
  { text, htmls, enclosures }: ExtractedContent.Manuscript,
): Uint8Array | null => {
  if (messageId === undefined) return null
  const hash = createHash("sha256")
  hash.update(JSON.stringify([messageId, subject, inReplyTo, text, htmls, enclosures.length]))
  for (const { filename, contentType, content } of enclosures) {
    hash.update(JSON.stringify([filename, contentType, content.length]))
    hash.update(content)
  }
  return new Uint8Array(hash.digest())
}

export const rewrite = async (given: Given): Promise<Outcome> => {
  const raw = Buffer.from(given.raw.buffer, given.raw.byteOffset, given.raw.byteLength)
  const root = index(raw)
  const head = Letterhead.read(raw, root.rows, given)
  if (head._tag !== "Letterhead") return head
  const body = ExtractedContent.read(raw, root)
  if (body._tag !== "Manuscript") return body
  const { messageId = given.messageId } = head
  const { text, htmls, enclosures } = body
  const { did, disclosure, language } = given
  const written = await put({ ...head, messageId, text, htmls, enclosures, did, disclosure, language })
  if (written._tag !== "Composed") return written
  const { from, to, cc, replyTo, subject, inReplyTo, references } = head
  return {
    _tag: "Rewritten",
    rewritten: {
      ...written.composed,
      messageId,
      from,
      to,
      cc,
      replyTo,
      subject,
      inReplyTo,
      references,
      fingerprint: fingerprintOf(head, body),
    },
  }
}

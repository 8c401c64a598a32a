/** Decides whether the review page shows a message completely. Incomplete messages cannot be approved. */
import { frameLimits } from "@svc/domain/mail/FrameLimits"
import type { Answer } from "../client/Client.ts"

export type Pending = Answer<"GET /api/identities/:handle/approvals/:id">

/** Matches image references of a scheme in attributes and styles. */
const named = (scheme: string) =>
  new RegExp(`(?:src|background)\\s*=\\s*["']?\\s*${scheme}|url\\(\\s*["']?${scheme}`, "i")
const onOtherServers = named("https?:")
const inClearText = named("http:")

/** The named characters that can be part of a scheme or stand before it. No letter has a name. */
const characters: Readonly<Record<string, string>> = { colon: ":", quot: '"', apos: "'", lpar: "(" }

/** Returns the HTML with schemes as a mail program reads them: entities are decoded, and line breaks and tabs ignored. */
const readable = (html: string): string =>
  html
    .replace(/&(?:#(\d{1,6})|#x([\da-f]{1,6})|(\w+));?/gi, (whole, decimal?: string, hex?: string, name = "") => {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      return code < 128
        ? String.fromCharCode(code)
        : (characters[name] ?? (/^(?:Tab|NewLine)$/.test(name) ? "" : whole))
    })
    .replace(/[\t\r\n]/g, "")

export const loadsImages = ({ html }: Pick<Pending, "html">): boolean =>
  html !== null && onOtherServers.test(readable(html))

/** Matches the value of an attribute, in quotes or without. */
const values = /=\s*("[^"]*"|'[^']*'|[^\s"'>][^\s>]*)/g

/** Returns whether an attribute may contain an address that is too long; embedded images have a limit of their own. */
const mayBeTooLong = (value: string): boolean => {
  if (/^["']?\s*data:/i.test(value)) return false
  // Encoding makes an address longer, and so does a character that is written as an entity, by at most 14 each.
  const entities = value.match(/&/g)?.length ?? 0
  return encodeURI(value.toWellFormed()).length + 14 * entities > frameLimits.address
}

/** Returns whether the frame leaves out a part of the HTML. If it is uncertain, the part counts as left out. */
const isCut = (message: Pending): boolean => {
  const { html, attachments } = message
  if (html === null) return false
  const count = (pattern: RegExp) => html.match(pattern)?.length ?? 0
  const largest = Math.max(0, ...attachments.map(({ size }) => size))
  return (
    html.length > frameLimits.html ||
    count(/cid:/gi) * Math.ceil(largest * 1.4) > frameLimits.pictures ||
    count(/<a\b/gi) > frameLimits.links ||
    (loadsImages(message) && count(/<img\b/gi) > frameLimits.remoteImages) ||
    [...html.matchAll(values)].some(([, value]) => mayBeTooLong(value!))
  )
}

/** Returns the reason why the page cannot show the whole message, or undefined. */
export const incomplete = (message: Pending, images: boolean): "too_long" | "http_images" | "images" | undefined => {
  const { html } = message
  if (html === null) return undefined
  if (isCut(message)) return "too_long"
  if (inClearText.test(readable(html))) return "http_images"
  return loadsImages(message) && !images ? "images" : undefined
}

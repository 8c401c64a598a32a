/** Decides whether the review page shows a message completely. Incomplete messages cannot be approved. */
import type { Answer } from "../client/Client.ts"

export type Pending = Answer<"GET /api/identities/:handle/approvals/:id">

/** Limits of the HTML frame, in characters of HTML and of embedded images (`packages/api/src/console/MailDocument.ts`). */
const limits = { html: 1_000_000, pictures: 16 * 1024 * 1024 }

/** Matches image references of a scheme in attributes and styles. */
const named = (scheme: string) =>
  new RegExp(`(?:src|background)\\s*=\\s*["']?\\s*${scheme}|url\\(\\s*["']?${scheme}`, "i")
const onOtherServers = named("https?:")
const inClearText = named("http:")

export const loadsImages = ({ html }: Pick<Pending, "html">): boolean => html !== null && onOtherServers.test(html)

/** Returns the reason why the page cannot show the whole message, or undefined. */
export const incomplete = (message: Pending, images: boolean): "too_long" | "http_images" | "images" | undefined => {
  const { html, attachments } = message
  if (html === null) return undefined
  const largest = Math.max(0, ...attachments.map(({ size }) => size))
  const pictures = (html.match(/cid:/gi)?.length ?? 0) * Math.ceil(largest * 1.4)
  if (html.length > limits.html || pictures > limits.pictures) return "too_long"
  if (inClearText.test(html)) return "http_images"
  return loadsImages(message) && !images ? "images" : undefined
}

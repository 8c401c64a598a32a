/** Whether the page shows a message whole: nobody approves what the page had to leave out. */
import type { Answer } from "../client/Client.ts"

export type Pending = Answer<"GET /api/identities/:handle/approvals/:id">

/** Characters of HTML, and of pictures inside it, that the frame shows (`packages/api/src/console/MailDocument.ts`). */
const limits = { html: 1_000_000, pictures: 16 * 1024 * 1024 }

/** Where HTML names a picture: an attribute, or a style. */
const named = (scheme: string) =>
  new RegExp(`(?:src|background)\\s*=\\s*["']?\\s*${scheme}|url\\(\\s*["']?${scheme}`, "i")
const onOtherServers = named("https?:")
const inClearText = named("http:")

export const loadsImages = ({ html }: Pick<Pending, "html">): boolean => html !== null && onOtherServers.test(html)

/** Returns what keeps the page from showing the message whole; undefined if nothing does. */
export const incomplete = (message: Pending, images: boolean): "too_long" | "http_images" | "images" | undefined => {
  const { html, attachments } = message
  if (html === null) return undefined
  const largest = Math.max(0, ...attachments.map(({ size }) => size))
  const pictures = (html.match(/cid:/gi)?.length ?? 0) * Math.ceil(largest * 1.4)
  if (html.length > limits.html || pictures > limits.pictures) return "too_long"
  if (inClearText.test(html)) return "http_images"
  return loadsImages(message) && !images ? "images" : undefined
}

/** Decides whether the review page shows a message completely. Incomplete messages cannot be approved. */
import type { Answer } from "../client/Client.ts"

export type Pending = Answer<"GET /api/identities/:handle/approvals/:id">

/**
 * Limits of the HTML frame (`packages/api/src/console/MailDocument.ts`): characters of HTML, of embedded images and of the
 * address of a remote image, and the numbers of remote images and of links.
 */
const limits = { html: 1_000_000, pictures: 16 * 1024 * 1024, remoteUrl: 4000, remote: 200, links: 1000 }

/** Matches image references of a scheme in attributes and styles. */
const named = (scheme: string) =>
  new RegExp(`(?:src|background)\\s*=\\s*["']?\\s*${scheme}|url\\(\\s*["']?${scheme}`, "i")
const onOtherServers = named("https?:")
const inClearText = named("http:")

export const loadsImages = ({ html }: Pick<Pending, "html">): boolean => html !== null && onOtherServers.test(html)

/** Returns the addresses of remote images as the frame writes them. */
const remoteImages = (html: string) =>
  [...html.matchAll(/<img\b[^<>]*?\ssrc\s*=\s*["']?\s*(https?:[^"'\s>]*)/gi)].map(
    ([, url]) => URL.parse(url!)?.href ?? "",
  )

/** Returns the reason why the page cannot show the whole message, or undefined. */
export const incomplete = (message: Pending, images: boolean): "too_long" | "http_images" | "images" | undefined => {
  const { html, attachments } = message
  if (html === null) return undefined
  const largest = Math.max(0, ...attachments.map(({ size }) => size))
  const pictures = (html.match(/cid:/gi)?.length ?? 0) * Math.ceil(largest * 1.4)
  const remote = remoteImages(html)
  if (html.length > limits.html || pictures > limits.pictures) return "too_long"
  if (remote.length > limits.remote || remote.some(({ length }) => length > limits.remoteUrl)) return "too_long"
  if ((html.match(/<a\b/gi)?.length ?? 0) > limits.links) return "too_long"
  if (inClearText.test(html)) return "http_images"
  return loadsImages(message) && !images ? "images" : undefined
}

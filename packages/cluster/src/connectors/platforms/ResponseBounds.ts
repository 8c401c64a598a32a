/**
 * Bounds for what platforms return, since anyone can post there. Texts are truncated, invalid dates are replaced, and
 * lone surrogates and NUL characters are removed before they reach the store.
 */
import type { Post } from "@svc/domain/connectors/Post"

const lengths = { name: 500, address: 2048, text: 10_000 }

/** Truncates a text to a number of UTF-16 units and makes it storable. */
const cut = (text: string, length: number): string => text.slice(0, length).replaceAll("\0", "").toWellFormed()

export const boundedName = (text: string): string => cut(text, lengths.name)
const boundedAddress = (text: string): string => cut(text, lengths.address)
const boundedText = (text: string): string => cut(text, lengths.text)
/** Truncates a platform's error message. */
export const boundedWords = (text: string): string => cut(text.replace(/\s+/g, " ").trim(), 300)

/** Returns an http or https URL, or null for anything else. */
const boundedUrl = (text: string | null | undefined): string | null => {
  if (text == null || text.length > lengths.address) return null
  const protocol = URL.parse(text)?.protocol
  return protocol === "https:" || protocol === "http:" ? cut(text, lengths.address) : null
}

/** Parses a date between 1970 and 9999, or returns `otherwise`. */
export const boundedDate = (text: string, otherwise: Date): Date => {
  const at = new Date(text)
  return at.getTime() >= 0 && at.getTime() < 253_402_300_800_000 ? at : otherwise
}

export const boundedPost = (post: Post): Post => ({
  uri: boundedAddress(post.uri),
  url: boundedUrl(post.url),
  author_id: boundedAddress(post.author_id),
  author: boundedName(post.author),
  author_name: post.author_name === null ? null : boundedName(post.author_name),
  text: boundedText(post.text),
  reply_to: post.reply_to === null ? null : boundedAddress(post.reply_to),
  created_at: post.created_at,
})

const [quote, backslash, comma, bracket, brace] = [...'"\\,[{'].map((sign) => sign.charCodeAt(0))

/**
 * Returns whether a JSON text has more values than a limit, so that parsing or validating it would block the event loop. Estimates the
 * number by counting opening and separating characters outside of strings.
 */
export const hasMoreValues = (json: Uint8Array, atMost: number): boolean => {
  let values = 0
  let quoted = false
  for (let at = 0; at < json.length; at++) {
    const sign = json[at]
    if (quoted) {
      if (sign === backslash) at++
      else if (sign === quote) quoted = false
    } else if (sign === quote) quoted = true
    else if ((sign === comma || sign === bracket || sign === brace) && ++values > atMost) return true
  }
  return false
}

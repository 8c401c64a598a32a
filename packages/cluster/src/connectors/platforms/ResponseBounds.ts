/**
 * What is taken of a platform's answers: anyone can write there, and a server can answer anything. Texts are cut, dates
 * that are none are refused, and no lone surrogate or NUL gets as far as the store.
 */
import type { Post } from "@svc/domain/connectors/Post"

const lengths = { name: 500, address: 2048, text: 10_000 }

/** Text that can be stored, of at most so many UTF-16 units. */
const cut = (text: string, length: number): string => text.slice(0, length).replaceAll("\0", "").toWellFormed()

export const boundedName = (text: string): string => cut(text, lengths.name)
export const boundedAddress = (text: string): string => cut(text, lengths.address)
export const boundedText = (text: string): string => cut(text, lengths.text)
/** The platform's own words, in a refusal. */
export const boundedWords = (text: string): string => cut(text.replace(/\s+/g, " ").trim(), 300)

/** A web address as people may follow it; null for anything else. */
export const boundedUrl = (text: string | null | undefined): string | null => {
  if (text == null || text.length > lengths.address) return null
  const protocol = URL.parse(text)?.protocol
  return protocol === "https:" || protocol === "http:" ? cut(text, lengths.address) : null
}

/** A time between 1970 and 9999; `otherwise` for what is none. */
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

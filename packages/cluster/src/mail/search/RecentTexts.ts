/**
 * Texts of messages that this process stored lately. Where many arrive, the segment that they come into is soon full, and
 * made without reading them back: half of what a segment costs PostgreSQL. A text that is not here is read.
 */
import { Context } from "effect"

/** Characters that are kept at most, of all texts and of one; the oldest go first. */
const most = { inAll: 16 * 1024 * 1024, inOne: 64 * 1024 }

export const make = ({ inAll, inOne } = most) => {
  const texts = new Map<string, string>()
  let characters = 0
  const take = (id: string): string | undefined => {
    const text = texts.get(id)
    if (text !== undefined && texts.delete(id)) characters -= text.length
    return text
  }
  return {
    /** The text that was stored with a message. */
    keep: (id: string, text: string): void => {
      if (text.length > inOne) return
      take(id)
      // As it is in the store, where half a pair of surrogates cannot stand.
      texts.set(id, text.toWellFormed())
      characters += text.length
      for (const oldest of texts.keys()) {
        if (characters <= inAll) break
        take(oldest)
      }
    },
    /** A message's text, and forgets it: there is one segment that it comes into. */
    take,
  }
}

export const RecentTexts = Context.Reference("@svc/cluster/mail/search/RecentTexts", { defaultValue: () => make() })

/**
 * Cache of search texts that this process stored recently. Under load, a segment fills soon after its messages arrive
 * and can be built without reading their texts back, which is half of its cost for PostgreSQL. Texts that are not
 * cached are read.
 */
import { Context } from "effect"

/** Maximum characters of all texts and of one text; the oldest texts are evicted first. */
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
    /** Caches the search text of a message. */
    keep: (id: string, text: string): void => {
      if (text.length > inOne) return
      take(id)
      // PostgreSQL cannot store a lone surrogate.
      texts.set(id, text.toWellFormed())
      characters += text.length
      for (const oldest of texts.keys()) {
        if (characters <= inAll) break
        take(oldest)
      }
    },
    /** Returns and removes a text: a message belongs to one segment. */
    take,
  }
}

export const RecentTexts = Context.Reference("@svc/cluster/mail/search/RecentTexts", { defaultValue: () => make() })

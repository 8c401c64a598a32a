/**
 * Cache of all flags in a folder: clients read them each time they open it. A cached entry belongs to one value of the
 * change counter and is only used together with the changes since, which are queried each time, so no response is
 * stale.
 */
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Changes, Folder, Marked } from "../session/Store.ts"

/** Maximum cached messages per folder and in total (about 100 bytes each). */
const atMost = { ofFolder: 50_000, inAll: 200_000 }

interface CachedFlags {
  readonly modseq: number
  /** Ordered by UID and immutable. */
  readonly messages: ReadonlyArray<Marked>
}

/** Applies changes to a cached entry. */
const renewed = (kept: CachedFlags, { modseq, changed, vanished, isGone }: Changes): CachedFlags => {
  if (isGone) return { modseq, messages: [] }
  if (changed.length === 0 && vanished.length === 0) return { modseq, messages: kept.messages }
  const all = new Map(kept.messages.map((message) => [message.uid, message]))
  for (const uid of vanished) all.delete(uid)
  const last = kept.messages.at(-1)?.uid ?? 0
  let inOrder = true
  for (const message of changed) {
    inOrder &&= message.uid > last || all.has(message.uid)
    all.set(message.uid, message)
  }
  const messages = [...all.values()]
  return { modseq, messages: inOrder ? messages : messages.sort((a, b) => a.uid - b.uid) }
}

export const make = () => {
  /** Ordered from least to most recently used. */
  const folders = new Map<string, CachedFlags>()
  let count = 0

  const forget = (id: string) => {
    count -= folders.get(id)?.messages.length ?? 0
    folders.delete(id)
  }

  const keep = (id: string, kept: CachedFlags) => {
    const known = folders.get(id)
    // If two reads were concurrent, the later value is kept.
    const latest = known !== undefined && known.modseq > kept.modseq ? known : kept
    forget(id)
    if (latest.messages.length === 0 || latest.messages.length > atMost.ofFolder) return
    folders.set(id, latest)
    count += latest.messages.length
    for (const [oldest] of folders) {
      if (count <= atMost.inAll) break
      forget(oldest)
    }
  }

  return {
    /** Returns all messages of a folder: `whole` reads them, `changes` the changes since. */
    of: (
      { id }: Folder,
      whole: Effect.Effect<CachedFlags, Unavailable>,
      changes: (since: number) => Effect.Effect<Changes, Unavailable>,
    ): Effect.Effect<ReadonlyArray<Marked>, Unavailable> =>
      Effect.suspend(() => {
        const known = folders.get(id)
        const now = known === undefined ? whole : Effect.map(changes(known.modseq), (since) => renewed(known, since))
        return Effect.map(now, (kept) => {
          keep(id, kept)
          return kept.messages
        })
      }),
  }
}

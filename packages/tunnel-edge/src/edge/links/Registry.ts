/** The links that agents hold with this edge, and the selection of a link for a request. */
import type { Link } from "../../protocol/Link.ts"

export interface Attached {
  readonly id: string
  readonly link: Link
  readonly identityId: string
  readonly canonical: string
  readonly handle: string
  /** The process of the agent. A newer process replaces an older one. */
  readonly instance: string
  /** Number of the link within the agent. */
  readonly conn: string
  readonly since: Date
  readonly client: string
  readonly token: string
  /** The link is draining and is only selected if there is no other. */
  draining: boolean
  /** The agent is shutting down and the link is never selected. */
  leaving: boolean
  /** Address that the agent forwards to (`host:port`), if it sent one. */
  readonly localHost: string | null
  /** Whether the local port accepted the agent's last connection. */
  localUp: boolean
}

export interface Registry {
  readonly add: (attached: Attached) => void
  readonly remove: (attached: Attached) => void
  /** Marks a link as leaving after the agent announced its shutdown. */
  readonly leave: (attached: Attached) => void
  /** Returns the link with the fewest streams. Links that drain or whose local port is down come last. */
  readonly pick: (canonical: string) => Attached | undefined
  readonly of: (canonical: string) => ReadonlyArray<Attached>
  readonly all: () => ReadonlyArray<Attached>
  /** Returns when the last link of this name was lost, in monotonic milliseconds. */
  readonly lostAt: (canonical: string) => number | undefined
}

const isBetter = (one: Attached, best: Attached): boolean => {
  if (one.draining !== best.draining) return !one.draining
  if (one.localUp !== best.localUp) return one.localUp
  return one.link.mux.streams.size < best.link.mux.streams.size
}

const rememberedLosses = 10_000

/** `now` returns monotonic milliseconds. */
export const make = (now: () => number): Registry => {
  const links = new Map<string, Array<Attached>>()
  const losses = new Map<string, number>()
  const lost = (canonical: string) => {
    if (losses.size >= rememberedLosses) losses.clear()
    losses.set(canonical, now())
  }
  return {
    add: (attached) => {
      links.set(attached.canonical, [...(links.get(attached.canonical) ?? []), attached])
      losses.delete(attached.canonical)
    },
    remove: (attached) => {
      const left = (links.get(attached.canonical) ?? []).filter((one) => one !== attached)
      if (left.length > 0) links.set(attached.canonical, left)
      else {
        links.delete(attached.canonical)
        lost(attached.canonical)
      }
    },
    leave: (attached) => {
      attached.draining = attached.leaving = true
      if ((links.get(attached.canonical) ?? []).every(({ leaving }) => leaving)) lost(attached.canonical)
    },
    pick: (canonical) => {
      let best: Attached | undefined
      for (const one of links.get(canonical) ?? [])
        if (!one.leaving && (best === undefined || isBetter(one, best))) best = one
      return best
    },
    of: (canonical) => links.get(canonical) ?? [],
    all: () => [...links.values()].flat(),
    lostAt: (canonical) => losses.get(canonical),
  }
}

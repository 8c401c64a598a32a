/** The links that agents hold with this edge, and the choice among them. */
import type { Link } from "../../protocol/Link.ts"

export interface Attached {
  readonly id: string
  readonly link: Link
  readonly identityId: string
  readonly canonical: string
  readonly handle: string
  /** The agent's process; a newer one takes the name over. */
  readonly instance: string
  /** Which of the agent's links, by its own count. */
  readonly conn: string
  readonly since: Date
  readonly client: string
  readonly token: string
  /** It is to get nothing new where there is another. */
  draining: boolean
  /** The agent's process ends: it gets nothing new at all. */
  leaving: boolean
  /** What the agent forwards to (`host:port`), where it said so. */
  readonly localHost: string | null
  /** Whether that answered when the agent last tried. */
  localUp: boolean
}

export interface Registry {
  readonly add: (attached: Attached) => void
  readonly remove: (attached: Attached) => void
  /** The agent said that it goes. */
  readonly leave: (attached: Attached) => void
  /** The link with the fewest streams; one that is draining, or whose port is down, only where there is no other. */
  readonly pick: (canonical: string) => Attached | undefined
  readonly of: (canonical: string) => ReadonlyArray<Attached>
  readonly all: () => ReadonlyArray<Attached>
  /** When the last link of this name was lost, in milliseconds since the epoch. */
  readonly lostAt: (canonical: string) => number | undefined
}

const isBetter = (one: Attached, best: Attached): boolean => {
  if (one.draining !== best.draining) return !one.draining
  if (one.localUp !== best.localUp) return one.localUp
  return one.link.mux.streams.size < best.link.mux.streams.size
}

const rememberedLosses = 10_000

/** `now`: milliseconds of a clock that nobody sets. */
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

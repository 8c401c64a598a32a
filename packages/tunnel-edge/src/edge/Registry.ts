/** The links that agents hold with this edge, and the choice among them. */
import type { Link } from "../protocol/Link.ts"

export interface Attached {
  readonly id: string
  readonly link: Link
  readonly identityId: string
  readonly canonical: string
  readonly handle: string
  /** The agent's process; a newer one takes the name over. */
  readonly instance: string
  readonly since: Date
  readonly client: string
  readonly token: string
  draining: boolean
}

export interface Registry {
  readonly add: (attached: Attached) => void
  readonly remove: (attached: Attached) => void
  /** The link with the fewest streams; one that is leaving only where there is no other, until the agent is back. */
  readonly pick: (canonical: string) => Attached | undefined
  readonly of: (canonical: string) => ReadonlyArray<Attached>
  readonly all: () => ReadonlyArray<Attached>
  /** When the last link of this name was lost, in milliseconds since the epoch. */
  readonly lostAt: (canonical: string) => number | undefined
}

const rememberedLosses = 10_000

export const make = (): Registry => {
  const links = new Map<string, Array<Attached>>()
  const losses = new Map<string, number>()
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
        if (losses.size >= rememberedLosses) losses.clear()
        losses.set(attached.canonical, Date.now())
      }
    },
    pick: (canonical) => {
      let best: Attached | undefined
      for (const one of links.get(canonical) ?? []) {
        const better =
          best === undefined || one.draining !== best.draining
            ? best === undefined || !one.draining
            : one.link.mux.streams.size < best.link.mux.streams.size
        if (better) best = one
      }
      return best
    },
    of: (canonical) => links.get(canonical) ?? [],
    all: () => [...links.values()].flat(),
    lostAt: (canonical) => losses.get(canonical),
  }
}

/**
 * The way of a request: its name is looked up (and kept a while, until word of a change comes), then a link of this edge
 * is taken, else a stream of an edge that holds one, in one hop. A name whose links were just lost is waited for.
 */
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { tunnelKey } from "@svc/cluster/feed/Keys"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Cache, Duration, Effect, Exit, Option } from "effect"
import { flag } from "../../protocol/Manifest.ts"
import type { MuxStream } from "../../protocol/Mux.ts"
import * as OpenConnections from "./OpenConnections.ts"
import type { Peers } from "../links/Peers.ts"
import type { Registry } from "../links/Registry.ts"
import type { BackgroundEffects } from "../BackgroundEffects.ts"

export interface AgentPath {
  /** Whether the agent said that it is about to go. */
  readonly isLeaving: () => boolean
  readonly open: (kind: number, meta: object) => MuxStream | undefined
  /** What the agent forwards to (`host:port`); null where it did not say. */
  readonly localHost: string | null
}

const kept = { names: 50_000, withLinks: "30 seconds", without: "2 seconds", unknown: "5 seconds" } as const
/** A name whose last link was just lost is waited for: the agent is on its way back. */
const hold = { lostWithinMillis: 10_000, waitMillis: 3_000, step: "50 millis", atMost: 100 } as const

export const make = Effect.fnUntraced(function* (options: {
  readonly edgeId: string
  readonly registry: Registry
  readonly peers: Peers
  readonly launch: BackgroundEffects["launch"]
  /** The links or the settings of a name changed somewhere. */
  readonly onChange: (canonical: string) => void
}) {
  const tunnels = yield* TunnelQueries
  const feed = yield* ChangeFeed
  /** Requests that wait, by name. */
  const waiting = new Map<string, number>()
  const count = (canonical: string, by: number) => {
    const now = (waiting.get(canonical) ?? 0) + by
    if (now > 0) waiting.set(canonical, now)
    else waiting.delete(canonical)
  }

  const names = yield* Cache.makeWith(tunnels.standing, {
    capacity: kept.names,
    timeToLive: Exit.match({
      onFailure: () => Duration.zero,
      onSuccess: (standing) =>
        standing === undefined ? kept.unknown : standing.holders.length > 0 ? kept.withLinks : kept.without,
    }),
  })

  /** What is known of a name; undefined where there is no such Identity. */
  const standing = (canonical: string) =>
    Effect.map(Cache.get(names, canonical), (found) => (found?.status === "deleting" ? undefined : found))
  const openings = OpenConnections.make(standing)
  const refreshAll = Effect.suspend(() =>
    Effect.forEach(openings.names(), openings.refresh, { concurrency: 4, discard: true }),
  )

  // Word of changes; while it is cut off, what is kept runs out by itself.
  const changes = yield* feed.follow("tunnel")
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.flatMap(changes.await, (keys) =>
        keys === undefined
          ? Effect.map(Cache.invalidateAll(names), () => options.launch(refreshAll))
          : Effect.forEach(
              keys,
              (key) => {
                const canonical = key.slice(tunnelKey("").length)
                return Effect.map(Cache.invalidate(names, canonical), () => {
                  options.onChange(canonical)
                  options.launch(openings.refresh(canonical))
                })
              },
              { discard: true },
            ),
      ),
    ),
  )

  const here = (canonical: string): AgentPath | undefined => {
    const attached = options.registry.pick(canonical)
    return attached === undefined
      ? undefined
      : {
          open: (kind, meta) => attached.link.mux.open(kind, 0, Buffer.from(JSON.stringify(meta))),
          isLeaving: () => attached.leaving,
          localHost: attached.localHost,
        }
  }

  /** The less busy of the edges that hold a link and answer. */
  const elsewhere = Effect.fnUntraced(function* (canonical: string, { holders }: Standing) {
    const others = holders.filter(({ edge_id }) => edge_id !== options.edgeId).slice(0, 2)
    const answers = yield* Effect.forEach(
      others,
      ({ edge_address, local_host }) =>
        Effect.map(
          Effect.promise(() => options.peers.to(edge_address)),
          (peer) => ({ peer, local_host }),
        ),
      { concurrency: "unbounded" },
    )
    let best: AgentPath | undefined
    let load = Infinity
    for (const { peer, local_host } of answers) {
      if (peer === undefined || peer.mux.streams.size >= load) continue
      load = peer.mux.streams.size
      best = {
        isLeaving: () => false,
        open: (kind, meta) =>
          peer.mux.open(kind, flag.hopped, Buffer.from(JSON.stringify({ ...meta, name: canonical }))),
        localHost: local_host,
      }
    }
    return best
  })

  return {
    standing,

    /** A connection of a name begins, which was judged by `judged`; `changed` tells it that something else holds. */
    open: (canonical: string, judged: Standing, changed: () => void): OpenConnections.OpenConnection => {
      const opening = openings.open(canonical, judged, changed)
      // It waited for its agent, and word of a change came before it was known here.
      options.launch(
        Effect.flatMap(Cache.getSuccess(names, canonical), (kept) =>
          Option.isSome(kept) && kept.value === opening.now() ? Effect.void : openings.refresh(canonical),
        ),
      )
      return opening
    },
    /** Looks again at every name with open connections, for the word that was lost. */
    refreshAll,

    /** The way that was taken led nowhere: what was known of it is forgotten. */
    forget: (canonical: string) => Cache.invalidate(names, canonical),

    /** A link to the agent, here or one hop away; undefined where there is none, also not after a wait. */
    find: Effect.fnUntraced(function* (canonical: string, known: Standing) {
      const now = yield* monotonicMillis
      const lostAt = options.registry.lostAt(canonical)
      let standing = known
      let looked = false
      let wait = lostAt !== undefined && now - lostAt < hold.lostWithinMillis
      while (true) {
        const way = here(canonical) ?? (yield* elsewhere(canonical, standing))
        if (way !== undefined) return way
        // Its edge died a moment ago: the lease stands, nobody answers, and the agent is dialling. Word comes when it is back.
        if (!looked && standing.holders.length > 0) yield* Cache.invalidate(names, canonical)
        wait ||= standing.holders.length > 0
        const late = (yield* monotonicMillis) >= now + hold.waitMillis
        if (!wait || late || (waiting.get(canonical) ?? 0) >= hold.atMost) return undefined
        looked = true
        count(canonical, 1)
        yield* Effect.ensuring(
          Effect.sleep(hold.step),
          Effect.sync(() => count(canonical, -1)),
        )
        standing = (yield* Cache.get(names, canonical)) ?? standing
      }
    }),
  }
})

export type Routes = Effect.Success<ReturnType<typeof make>>

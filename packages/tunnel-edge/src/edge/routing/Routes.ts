/**
 * Finds the link for a request. The name is looked up and cached until a change is announced; then a link of this edge
 * is used, or else a link of another edge over one hop. A request for a name whose links were just lost waits for the
 * agent to reconnect.
 */
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { tunnelKey } from "@svc/cluster/tunnel/TunnelLinks"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Cache, Duration, Effect, Exit, Option } from "effect"
import { flag } from "../../protocol/Manifest.ts"
import type { MuxStream } from "../../protocol/Mux.ts"
import * as OpenConnections from "./OpenConnections.ts"
import type { Peers } from "../links/Peers.ts"
import type { Registry } from "../links/Registry.ts"
import type { BackgroundEffects } from "../BackgroundEffects.ts"

export interface AgentPath {
  /** Returns whether the agent announced its shutdown. */
  readonly isLeaving: () => boolean
  readonly open: (kind: number, meta: object) => MuxStream | undefined
  /** Address that the agent forwards to (`host:port`), or null if it is unknown. */
  readonly localHost: string | null
}

const kept = { names: 50_000, withLinks: "30 seconds", without: "2 seconds", unknown: "5 seconds" } as const
/** How long a request waits for an agent whose last link was just lost. */
const hold = { lostWithinMillis: 10_000, waitMillis: 3_000, step: "50 millis", atMost: 100 } as const

export const make = Effect.fnUntraced(function* (options: {
  readonly edgeId: string
  readonly registry: Registry
  readonly peers: Peers
  readonly launch: BackgroundEffects["launch"]
  /** Called when the links or the settings of a name changed on any edge. */
  readonly onChange: (canonical: string) => void
}) {
  const tunnels = yield* TunnelQueries
  const feed = yield* ChangeFeed
  /** Number of waiting requests by name. */
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

  /** Returns the settings and links of a name, or undefined if the Identity does not exist. */
  const standing = (canonical: string) =>
    Effect.map(Cache.get(names, canonical), (found) => (found?.status === "deleting" ? undefined : found))
  const openings = OpenConnections.make(standing)
  const refreshAll = Effect.suspend(() =>
    Effect.forEach(openings.names(), openings.refresh, { concurrency: 4, discard: true }),
  )

  // Invalidates cached names on change. While the feed is interrupted, cached names expire on their own.
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

  /** Returns the less busy of up to two other edges that hold a link and are reachable. */
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

    /**
     * Registers an open connection that was authorized with the settings `judged`; `changed` is called when they
     * change.
     */
    open: (canonical: string, judged: Standing, changed: () => void): OpenConnections.OpenConnection => {
      const opening = openings.open(canonical, judged, changed)
      // The settings may have changed while the request waited for its agent.
      options.launch(
        Effect.flatMap(Cache.getSuccess(names, canonical), (kept) =>
          Option.isSome(kept) && kept.value === opening.now() ? Effect.void : openings.refresh(canonical),
        ),
      )
      return opening
    },
    /** Looks up every name with open connections, in case a notification was lost. */
    refreshAll,

    /** Drops a cached name after its route failed. */
    forget: (canonical: string) => Cache.invalidate(names, canonical),

    /**
     * Returns a link to the agent, here or one hop away, waiting for a reconnect if necessary; undefined if there is
     * none.
     */
    find: Effect.fnUntraced(function* (canonical: string, known: Standing) {
      const now = yield* monotonicMillis
      const lostAt = options.registry.lostAt(canonical)
      let standing = known
      let looked = false
      let wait = lostAt !== undefined && now - lostAt < hold.lostWithinMillis
      while (true) {
        const way = here(canonical) ?? (yield* elsewhere(canonical, standing))
        if (way !== undefined) return way
        // If its edge just crashed, the lease is still valid while the agent reconnects elsewhere. The reconnect is
        // announced.
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

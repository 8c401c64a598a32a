/**
 * The state of domains that receive mail directly: concurrency limits, pools of idle connections to their servers, and
 * back-off after none of them could be reached.
 */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect, Semaphore } from "effect"
import { Timing } from "../../Timing.ts"
import * as Pool from "./smtp/Pool.ts"

/** The maximum number of concurrent messages to one domain, and to all, and of domains kept in memory. */
const limits = { each: 5, all: 50, kept: 10_000 }

interface Destination {
  readonly slots: Semaphore.Semaphore
  /** Keyed by server, address and TLS terms. */
  readonly pools: Map<string, Pool.Pool>
  inFlight: number
  failures: number
  /** The end of the back-off. */
  backOffUntil: number
}

export const make = () => {
  const domains = new Map<string, Destination>()
  const slots = Semaphore.makeUnsafe(limits.all)

  /** Removes domains without deliveries in progress when there are too many. */
  const prune = (now: number) => {
    if (domains.size < limits.kept) return
    for (const [domain, one] of domains) {
      if (one.inFlight > 0 || one.backOffUntil > now) continue
      for (const pool of one.pools.values()) pool.close()
      domains.delete(domain)
    }
  }

  const of = (domain: string, now: number): Destination => {
    const known = domains.get(domain)
    if (known !== undefined) return known
    prune(now)
    const fresh: Destination = {
      slots: Semaphore.makeUnsafe(limits.each),
      pools: new Map(),
      inFlight: 0,
      failures: 0,
      backOffUntil: 0,
    }
    domains.set(domain, fresh)
    return fresh
  }

  return {
    /** Runs `work` when a slot is free, or `tooMany` if none becomes free in time. */
    withSlot: <A, E, R>(
      domain: string,
      work: (destination: Destination) => Effect.Effect<A, E, R>,
      tooMany: Effect.Effect<A>,
    ): Effect.Effect<A, E, R> =>
      Effect.flatMap(monotonicMillis, (now) => {
        const destination = of(domain, now)
        const slot = Effect.andThen(
          destination.slots.take(1),
          slots.take(1).pipe(Effect.onInterrupt(() => destination.slots.release(1))),
        )
        return Effect.uninterruptibleMask((restore) => {
          destination.inFlight++
          const left = Effect.sync(() => void destination.inFlight--)
          return restore(
            Effect.timeoutOrElse(Effect.as(slot, true), {
              duration: Timing.sendTurnMillis,
              orElse: () => Effect.succeed(false),
            }),
          ).pipe(
            Effect.flatMap((hasSlot) =>
              hasSlot
                ? Effect.ensuring(
                    restore(work(destination)),
                    Effect.andThen(slots.release(1), destination.slots.release(1)),
                  )
                : tooMany,
            ),
            Effect.ensuring(left),
          )
        })
      }),

    /** Returns the pool of a server, creating it if needed. */
    pool: (destination: Destination, key: string, begin: Pool.PoolSettings["begin"]): Pool.Pool => {
      const known = destination.pools.get(key)
      if (known !== undefined) return known
      // Servers change, so a pool is dropped when it has neither a connection nor a message.
      if (destination.pools.size > 20) {
        for (const [name, pool] of destination.pools) if (pool.isEmpty()) destination.pools.delete(name)
      }
      const pool = Pool.make({
        begin,
        maxConnections: limits.each,
        idleMillis: Timing.directIdleMillis,
        maxLetters: 50,
      })
      destination.pools.set(key, pool)
      return pool
    },

    reached: (destination: Destination): void => {
      destination.failures = 0
      destination.backOffUntil = 0
    },

    /** Doubles the back-off after none of the domain's servers could be reached. */
    unreachable: (destination: Destination, now: number): void => {
      destination.failures++
      const millis = Timing.backOffMillis * 2 ** Math.min(destination.failures - 1, 10)
      destination.backOffUntil = now + Math.min(millis, Timing.backOffMostMillis)
    },

    close: (): void => {
      for (const { pools } of domains.values()) for (const pool of pools.values()) pool.close()
    },
  }
}

/**
 * What is remembered of the domains that mail goes to directly: how many letters are on their way to one at a time, the
 * connections that are kept to its servers for a moment, and how long it is left alone after none of them could be reached.
 */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect, Semaphore } from "effect"
import { Timing } from "../../Timing.ts"
import * as Pool from "./smtp/Pool.ts"

/** Letters to one domain at once, and to all. */
const limits = { each: 5, all: 50, kept: 10_000 }

interface Destination {
  readonly places: Semaphore.Semaphore
  /** By server, address and terms. */
  readonly pools: Map<string, Pool.Pool>
  under: number
  failures: number
  /** Left alone until then. */
  until: number
}

export const make = () => {
  const domains = new Map<string, Destination>()
  const places = Semaphore.makeUnsafe(limits.all)

  /** Forgets domains to which nothing is under way, when there are many. */
  const prune = (now: number) => {
    if (domains.size < limits.kept) return
    for (const [domain, one] of domains) {
      if (one.under > 0 || one.until > now) continue
      for (const pool of one.pools.values()) pool.close()
      domains.delete(domain)
    }
  }

  const of = (domain: string, now: number): Destination => {
    const known = domains.get(domain)
    if (known !== undefined) return known
    prune(now)
    const fresh: Destination = {
      places: Semaphore.makeUnsafe(limits.each),
      pools: new Map(),
      under: 0,
      failures: 0,
      until: 0,
    }
    domains.set(domain, fresh)
    return fresh
  }

  return {
    /** Runs when it is the letter's turn. `tooMany` where its turn does not come soon. */
    inTurn: <A, E, R>(
      domain: string,
      work: (destination: Destination) => Effect.Effect<A, E, R>,
      tooMany: Effect.Effect<A>,
    ): Effect.Effect<A, E, R> =>
      Effect.flatMap(monotonicMillis, (now) => {
        const destination = of(domain, now)
        const turn = Effect.andThen(
          destination.places.take(1),
          places.take(1).pipe(Effect.onInterrupt(() => destination.places.release(1))),
        )
        return Effect.uninterruptibleMask((restore) => {
          destination.under++
          const left = Effect.sync(() => void destination.under--)
          return restore(
            Effect.timeoutOrElse(Effect.as(turn, true), {
              duration: Timing.sendTurnMillis,
              orElse: () => Effect.succeed(false),
            }),
          ).pipe(
            Effect.flatMap((hasTurn) =>
              hasTurn
                ? Effect.ensuring(
                    restore(work(destination)),
                    Effect.andThen(places.release(1), destination.places.release(1)),
                  )
                : tooMany,
            ),
            Effect.ensuring(left),
          )
        })
      }),

    /** The pool of a server of the domain, made where there is none. */
    pool: (destination: Destination, key: string, begin: Pool.PoolSettings["begin"]): Pool.Pool => {
      const known = destination.pools.get(key)
      if (known !== undefined) return known
      // Servers come and go; what is idle is closed soon by itself.
      if (destination.pools.size > 20) {
        for (const [name, pool] of destination.pools) if (pool.isIdle()) destination.pools.delete(name)
      }
      const pool = Pool.make({ begin, most: limits.each, idleMillis: Timing.directIdleMillis, letters: 50 })
      destination.pools.set(key, pool)
      return pool
    },

    reached: (destination: Destination): void => {
      destination.failures = 0
      destination.until = 0
    },

    /** None of its servers could be reached: each time it is left alone for twice as long. */
    missed: (destination: Destination, now: number): void => {
      destination.failures++
      const millis = Timing.backOffMillis * 2 ** Math.min(destination.failures - 1, 10)
      destination.until = now + Math.min(millis, Timing.backOffMostMillis)
    },

    close: (): void => {
      for (const { pools } of domains.values()) for (const pool of pools.values()) pool.close()
    },
  }
}

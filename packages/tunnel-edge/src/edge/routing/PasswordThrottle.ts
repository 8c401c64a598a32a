/**
 * Throttles password guesses by Identity and client. After 10 failures within a minute, no credentials of the client
 * are checked until that minute is over.
 */

const windowMillis = 60_000
const failuresAtMost = 10
/** Largest number of counters. More clients than this indicate an attack, and the oldest counters are dropped. */
const countersAtMost = 100_000

interface Counter {
  readonly until: number
  failures: number
}

export const make = (now: () => number = Date.now) => {
  /** Counters in order of creation. */
  const counters = new Map<string, Counter>()
  const keyOf = (identityId: string, client: string) => `${identityId} ${client}`

  return {
    /** Returns the milliseconds for which this client is throttled, or 0. */
    brakedFor: (identityId: string, client: string): number => {
      if (counters.size === 0) return 0
      const counter = counters.get(keyOf(identityId, client))
      return counter === undefined || counter.failures < failuresAtMost ? 0 : Math.max(0, counter.until - now())
    },

    failed: (identityId: string, client: string): void => {
      const key = keyOf(identityId, client)
      const present = counters.get(key)
      if (present !== undefined && present.until > now()) return void present.failures++
      counters.delete(key)
      for (const [oldest, { until }] of counters) {
        if (until > now() && counters.size < countersAtMost) break
        counters.delete(oldest)
      }
      counters.set(key, { until: now() + windowMillis, failures: 1 })
    },
  }
}

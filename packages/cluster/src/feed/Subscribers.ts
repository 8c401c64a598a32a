/**
 * The subscribers in this process by key. Signals are conflated: after any number of changes, the next wait resolves once
 * and immediately, so that a subscriber that reads the store after each wait misses no change.
 */
import { Effect, Latch, type Scope } from "effect"

interface Changes {
  /** Resolves after a change since it last resolved, or since the subscription. For use by one fiber. */
  readonly await: Effect.Effect<void>
}

/** The changed keys of one kind, or `undefined` if changes may have been missed. */
interface KindChanges {
  readonly await: Effect.Effect<ReadonlySet<string> | undefined>
}

/** Number of pending keys above which a follower is notified of missed changes instead. */
const heldAtMost = 10_000

/** Waits for the latch and closes it before the subscriber reads the store, so that later changes open it again. */
const next = (latch: Latch.Latch) => Effect.andThen(latch.await, latch.close)

/** Notifies a copy of the subscribers, because a notified fiber runs immediately and may subscribe to the same key again. */
const wakeEach = (wakes: Iterable<() => void>) => {
  const now = [...wakes]
  for (const wake of now) wake()
}

interface Follower {
  readonly latch: Latch.Latch
  keys: Set<string> | undefined
}

/** Sets of subscribers by key. A subscriber is removed with its scope, and a key with its last subscriber. */
const registry = <A>() => {
  const sets = new Map<string, Set<A>>()
  return {
    sets,
    add: (key: string, subscriber: A): Effect.Effect<A, never, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const set = sets.get(key)
          if (set === undefined) sets.set(key, new Set([subscriber]))
          else set.add(subscriber)
          return subscriber
        }),
        () =>
          Effect.sync(() => {
            const set = sets.get(key)
            set?.delete(subscriber)
            if (set?.size === 0) sets.delete(key)
          }),
      ),
  }
}

/** Returns `tunnel` for `tunnel/ada`, an Org's id for `<org>/messages:ada`, and an empty kind for a key without a slash (an id). */
const kindOf = (key: string) => key.slice(0, Math.max(0, key.indexOf("/")))

export const make = () => {
  const signals = registry<() => void>()
  const followers = registry<Follower>()
  const wakeSubscribers = () => wakeEach([...signals.sets.values()].flatMap((waiting) => [...waiting]))

  return {
    subscribe: (key: string): Effect.Effect<Changes, never, Scope.Scope> =>
      Effect.suspend(() => {
        const latch = Latch.makeUnsafe()
        return Effect.as(
          signals.add(key, () => void latch.openUnsafe()),
          { await: next(latch) },
        )
      }),

    /** Calls `wake`, which must not fail, on each change. For many subscribers with few changes, since it needs no fiber. */
    on: (key: string, wake: () => void): Effect.Effect<void, never, Scope.Scope> =>
      Effect.asVoid(signals.add(key, () => wake())),

    /** Subscribes to all keys `kind/…`. */
    follow: (kind: string): Effect.Effect<KindChanges, never, Scope.Scope> =>
      Effect.map(
        Effect.suspend(() => followers.add(kind, { latch: Latch.makeUnsafe(), keys: new Set() })),
        (follower) => ({
          await: Effect.map(next(follower.latch), () => {
            const keys = follower.keys
            follower.keys = new Set()
            return keys
          }),
        }),
      ),

    wake: (key: string): void => {
      const waiting = signals.sets.get(key)
      if (waiting !== undefined) wakeEach(waiting)
      const kind = followers.sets.get(kindOf(key))
      if (kind === undefined) return
      for (const follower of kind) {
        if (follower.keys !== undefined && follower.keys.size >= heldAtMost) follower.keys = undefined
        follower.keys?.add(key)
      }
      wakeEach(
        [...kind].map(
          ({ latch }) =>
            () =>
              void latch.openUnsafe(),
        ),
      )
    },

    /** Notifies all subscribers of single keys, because changes of any key may have been missed. */
    wakeSubscribers,

    /** Notifies all subscribers and followers, because changes of any key may have been missed. */
    wakeAll: (): void => {
      const following = [...followers.sets.values()].flatMap((kind) => [...kind])
      for (const follower of following) follower.keys = undefined
      wakeSubscribers()
      for (const { latch } of following) latch.openUnsafe()
    },

    /** Returns whether there are no subscribers to single keys. */
    isEmpty: (): boolean => signals.sets.size === 0,
  }
}

export type Subscribers = ReturnType<typeof make>

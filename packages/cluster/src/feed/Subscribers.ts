/**
 * Who waits for what, in this process. A signal conflates: however much happens between two waits, the next wait
 * resolves once and at once, so a subscriber that looks after each of them misses nothing and falls behind nobody.
 * A wake-up touches the subscribers of its key and no others.
 */
import { Effect, Latch, type Scope } from "effect"

export interface Changes {
  /** Resolves when something happened since it last resolved (at first: since the subscription). For one fiber. */
  readonly await: Effect.Effect<void>
}

/** What happened to a whole kind of keys: the keys, or `undefined` where word of some may have been missed. */
export interface KindChanges {
  readonly await: Effect.Effect<ReadonlySet<string> | undefined>
}

/** A follower that takes this long to look gets to hear that it missed some. */
const heldAtMost = 10_000

/** Waits for the latch and shuts it before the subscriber looks, so that what happens during the look opens it again. */
const next = (latch: Latch.Latch) => Effect.andThen(latch.await, latch.close)

/** Over a copy: a fiber that is woken runs at once, and may come back with a subscription of the same key. */
const wakeEach = (wakes: Iterable<() => void>) => {
  const now = [...wakes]
  for (const wake of now) wake()
}

interface Follower {
  readonly latch: Latch.Latch
  keys: Set<string> | undefined
}

/** Puts into the set of a key, and takes out again with the scope; a key nobody has is not kept. */
const registry = <A>() => {
  const sets = new Map<string, Set<A>>()
  return {
    sets,
    add: (key: string, one: A): Effect.Effect<A, never, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const set = sets.get(key)
          if (set === undefined) sets.set(key, new Set([one]))
          else set.add(one)
          return one
        }),
        () =>
          Effect.sync(() => {
            const set = sets.get(key)
            set?.delete(one)
            if (set?.size === 0) sets.delete(key)
          }),
      ),
  }
}

/** `tunnel` of `tunnel/ada`; a key without a stroke (an id) is of no kind. */
const kindOf = (key: string) => key.slice(0, Math.max(0, key.indexOf("/")))

export const make = () => {
  const signals = registry<() => void>()
  const followers = registry<Follower>()

  return {
    subscribe: (key: string): Effect.Effect<Changes, never, Scope.Scope> =>
      Effect.suspend(() => {
        const latch = Latch.makeUnsafe()
        return Effect.as(
          signals.add(key, () => void latch.openUnsafe()),
          { await: next(latch) },
        )
      }),

    /** Calls at each word. It costs no fiber that waits, and is for what is many and mostly silent; it must not fail. */
    on: (key: string, wake: () => void): Effect.Effect<void, never, Scope.Scope> =>
      Effect.asVoid(signals.add(key, () => wake())),

    /** All keys `kind/…`, with their names. */
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

    /** Something may have been missed, and nobody knows of what. */
    wakeAll: (): void => {
      const following = [...followers.sets.values()].flatMap((kind) => [...kind])
      for (const follower of following) follower.keys = undefined
      wakeEach([...signals.sets.values()].flatMap((waiting) => [...waiting]))
      for (const { latch } of following) latch.openUnsafe()
    },

    /** Whether anybody waits for a single key. */
    isEmpty: (): boolean => signals.sets.size === 0,
  }
}

export type Subscribers = ReturnType<typeof make>

/**
 * The newest Events of an Org, or of one Identity, as all streams that are open on it share them: a change costs one
 * query however many streams wait, and each takes from memory what is behind its own position. A stream that is further
 * behind than what is kept reads the store by itself until it has caught up.
 */
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Context, Effect, Latch, Layer, RcMap, Schedule } from "effect"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { Timing } from "../Timing.ts"
import { EventQueries, isBehind, type PlacedEvent, type Position } from "./EventQueries.ts"

const page = 100
const keptAtMost = 500

/** From the first look at an Event that has not settled: again and again with growing pauses, then the feed's re-check. */
const settling = Schedule.exponential(Timing.settlingPause, 1.5).pipe(Schedule.upTo({ duration: Timing.settling }))

interface Tail {
  /** Kept is what lies behind `start`, up to `end`. */
  start: Position
  end: Position
  kept: Array<PlacedEvent>
  readonly readers: Set<Latch.Latch>
}

const keyOf = (org: string, identityId: string | null) => (identityId === null ? org : `${org}/${identityId}`)

const make = Effect.gen(function* () {
  const events = yield* EventQueries
  const feed = yield* ChangeFeed

  /** Takes up what came; answers whether something has not settled. */
  const look = Effect.fnUntraced(function* (tail: Tail, org: string, identityId: string | null) {
    while (true) {
      const found = yield* events.since(org, identityId, tail.end, page)
      tail.end = found.at
      if (found.events.length > 0) {
        tail.kept.push(...found.events)
        const gone = tail.kept.splice(0, Math.max(0, tail.kept.length - keptAtMost)).at(-1)
        if (gone !== undefined) tail.start = gone.position
        for (const reader of tail.readers) reader.openUnsafe()
      }
      if (!found.more) return found.unsettled
    }
  })

  const tails = yield* RcMap.make({
    lookup: Effect.fnUntraced(function* (key: string) {
      const [org = key, identityId = null] = key.split("/")
      // Before the first look, so that nothing falls between the two.
      const changes = yield* feed.subscribe(identityId ?? org)
      const start = yield* events.horizon
      const tail: Tail = { start, end: start, kept: [], readers: new Set() }
      const caughtUp = look(tail, org, identityId).pipe(
        Effect.repeat({ schedule: settling, while: (unsettled) => unsettled }),
        // The store is unavailable: Events missed meanwhile are read afterwards.
        Effect.tapCause((cause) => Effect.logWarning("Events could not be read for streams", cause)),
        Effect.sandbox,
        Effect.retry(Schedule.spaced(Timing.feedReconnect)),
      )
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(changes.await, caughtUp)))
      return tail
    }),
  })

  return {
    /** `next` answers the Events behind the last it gave, at first behind `from`, as soon as there are some. */
    open: Effect.fnUntraced(function* (org: string, identityId: string | null, from: Position) {
      const tail = yield* RcMap.get(tails, keyOf(org, identityId))
      const latch = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const reader = Latch.makeUnsafe()
          tail.readers.add(reader)
          return reader
        }),
        (reader) => Effect.sync(() => tail.readers.delete(reader)),
      )
      let position = from
      const next: Effect.Effect<ReadonlyArray<PlacedEvent>, Unavailable> = Effect.gen(function* () {
        while (true) {
          yield* latch.close
          if (isBehind(tail.start, position)) {
            const found = yield* events.since(org, identityId, position, page)
            position = found.at
            if (found.events.length > 0) return found.events
          } else {
            const at = position
            const found = tail.kept.filter((one) => isBehind(one.position, at))
            if (isBehind(tail.end, at)) position = tail.end
            if (found.length > 0) return found
            yield* latch.await
          }
        }
      })
      return { next }
    }),
  }
})

export class EventTails extends Context.Service<EventTails, Effect.Success<typeof make>>()(
  "@svc/cluster/events/EventTails",
) {
  static readonly layer = Layer.effect(EventTails, make)
}

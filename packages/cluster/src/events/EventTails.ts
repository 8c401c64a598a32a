/**
 * The newest Events of an Org or an Identity, shared by all open streams of it. A change causes one query for any number of
 * streams, and each stream reads the Events after its own position from memory. A stream that is too far behind reads the
 * store until it has caught up.
 */
import type { Unavailable } from "@svc/domain/problems/Problem"
import { Context, Effect, Latch, Layer, RcMap, Schedule } from "effect"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { Timing } from "../Timing.ts"
import { EventQueries, isBehind, type PlacedEvent, type Position } from "./EventQueries.ts"

const page = 100
const keptAtMost = 500

/** Checks for an unsettled Event, with increasing delays. Later, the periodic check of the change feed finds it. */
const settling = Schedule.exponential(Timing.settlingPause, 1.5).pipe(Schedule.upTo({ duration: Timing.settling }))

interface Tail {
  /** `kept` has the Events after `start`, up to `end`. */
  start: Position
  end: Position
  kept: Array<PlacedEvent>
  readonly readers: Set<Latch.Latch>
}

const keyOf = (org: string, identityId: string | null) => (identityId === null ? org : `${org}/${identityId}`)

const make = Effect.gen(function* () {
  const events = yield* EventQueries
  const feed = yield* ChangeFeed

  /** Reads new Events. Returns whether there are unsettled ones. */
  const readNew = Effect.fnUntraced(function* (tail: Tail, org: string, identityId: string | null) {
    while (true) {
      const found = yield* events.since(org, identityId, tail.end, page)
      tail.end = found.at
      if (found.events.length > 0) {
        tail.kept.push(...found.events)
        const dropped = tail.kept.splice(0, Math.max(0, tail.kept.length - keptAtMost)).at(-1)
        if (dropped !== undefined) tail.start = dropped.position
        for (const reader of tail.readers) reader.openUnsafe()
      }
      if (!found.more) return found.unsettled
    }
  })

  const tails = yield* RcMap.make({
    lookup: Effect.fnUntraced(function* (key: string) {
      const [org = key, identityId = null] = key.split("/")
      // Subscribes before the first read, so that no change is missed.
      const changes = yield* feed.subscribe(identityId ?? org)
      const start = yield* events.horizon
      const tail: Tail = { start, end: start, kept: [], readers: new Set() }
      const catchUp = readNew(tail, org, identityId).pipe(
        Effect.repeat({ schedule: settling, while: (unsettled) => unsettled }),
        // Events of an outage of the store are read afterwards.
        Effect.tapCause((cause) => Effect.logWarning("Events could not be read for streams", cause)),
        Effect.sandbox,
        Effect.retry(Schedule.spaced(Timing.feedReconnect)),
      )
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(changes.await, catchUp)))
      return tail
    }),
  })

  return {
    /** Opens a stream after `from`. `next` waits for Events and returns those after the previous ones. */
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
            const found = tail.kept.filter((event) => isBehind(event.position, at))
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

/** Tails that open streams share: which Events they return, in which order, and with how many queries. */
import { expect, layer } from "@effect/vitest"
import { EventQueries, type PlacedEvent } from "@svc/cluster/events/EventQueries"
import { EventTails } from "@svc/cluster/events/EventTails"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import * as Stores from "@svc/cluster/store/Database"
import { fromPublic, makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Fiber, Latch, Layer } from "effect"
import { databaseLayer } from "../harness/Database.ts"
import { insertEvent, makeOrg, settled } from "../harness/Events.ts"
import { quietFeed, sealingLayer } from "../harness/Stores.ts"

let reads = 0
/** Lets the next `looks` reads of the Org's Events fail as if the store were unavailable. */
const outage = { org: "", looks: 0 }
const counted = Layer.effect(
  EventQueries,
  Effect.map(EventQueries, (queries) => ({
    ...queries,
    since: (...args: Parameters<typeof queries.since>) =>
      Effect.suspend(() => {
        reads++
        return args[0] === outage.org && outage.looks-- > 0 ? Effect.fail(Stores.unavailable()) : queries.since(...args)
      }),
  })),
)

const services = EventTails.layer.pipe(
  Layer.provideMerge(counted.pipe(Layer.provide(EventQueries.layer))),
  Layer.provideMerge(Layer.mergeAll(quietFeed, sealingLayer)),
  Layer.provideMerge(databaseLayer),
)

const ids = (found: ReadonlyArray<PlacedEvent>) => found.map(({ event }) => fromPublic("evt_", event.id))

/** Opens a transaction and assigns its id. It inserts its Event and commits when the test requests it. */
const transaction = Effect.fnUntraced(function* (org: string) {
  const sql = yield* Stores.Unhurried
  const [numbered, go, inserted, end] = [Latch.makeUnsafe(), Latch.makeUnsafe(), Latch.makeUnsafe(), Latch.makeUnsafe()]
  const id = yield* makeUuidV7
  const fiber = yield* Effect.forkChild(
    sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`select pg_current_xact_id()::text`
        yield* numbered.open
        yield* go.await
        yield* sql`insert into event (id, org_id, type, data, created_at) values (${id}, ${org}, 'mail.stopped', '{}', now())`
        yield* inserted.open
        yield* end.await
      }),
    ),
  )
  yield* numbered.await
  return {
    id,
    insert: Effect.andThen(go.open, inserted.await),
    commit: Effect.andThen(Effect.andThen(go.open, end.open), Fiber.join(fiber)),
  }
})

layer(services, { excludeTestServices: true, timeout: "60 seconds" })("streams that share a tail", (it) => {
  const opened = Effect.fnUntraced(function* (org: string, identityId: string | null = null) {
    const { at } = yield* (yield* EventQueries).beginning(org, identityId, undefined)
    return yield* (yield* EventTails).open(org, identityId, at)
  })

  it.effect("miss no Event after an outage of the store; a stream that was catching up ends and can be reopened", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const feed = yield* ChangeFeed
      const stream = yield* opened(org)
      const first = yield* insertEvent(org, "mail.stopped")
      Object.assign(outage, { org, looks: 2 })
      feed.announce({ org })
      // The Event is not announced again: the tail retries until the store responds.
      expect(ids(yield* stream.next)).toEqual([first])
      expect(outage.looks).toBeLessThanOrEqual(0)

      const other = yield* makeOrg
      const { at } = yield* (yield* EventQueries).beginning(other, null, undefined)
      const second = yield* insertEvent(other, "mail.stopped")
      yield* settled
      // The shared tail starts after this stream's position, so the stream has to read the Events in between itself.
      const { open } = yield* EventTails
      const behind = yield* open(other, null, at)
      Object.assign(outage, { org: other, looks: 1 })
      expect(yield* Effect.flip(behind.next)).toMatchObject({ code: "unavailable" })
      const repeated = yield* open(other, null, at)
      expect(ids(yield* repeated.next)).toEqual([second])
    }).pipe(Effect.scoped),
  )

  it.effect("return no Event from before the stream began, although the tail reads it later", () =>
    Effect.gen(function* () {
      const [org, feed] = [yield* makeOrg, yield* ChangeFeed]
      const early = yield* opened(org)
      const first = yield* insertEvent(org, "mail.stopped")
      yield* settled
      const late = yield* opened(org)
      const waiting = yield* Effect.forkChild(late.next, { startImmediately: true })
      feed.announce({ org })
      expect(ids(yield* early.next)).toEqual([first])
      const second = yield* insertEvent(org, "mail.started")
      feed.announce({ org })
      expect(ids(yield* Fiber.join(waiting))).toEqual([second])
    }).pipe(Effect.scoped),
  )

  it.effect("return every Event to a stream that is behind what the tail keeps", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const feed = yield* ChangeFeed
      const sql = yield* Stores.Unhurried
      const [slow, fast] = [yield* opened(org), yield* opened(org)]
      const count = 720
      yield* sql`
        insert into event (id, org_id, type, data, created_at)
        select uuidv7(), ${org}::uuid, 'mail.stopped', '{}', now() from generate_series(1, ${count}::int)`
      const last = yield* insertEvent(org, "mail.stopped")
      yield* settled
      feed.announce({ org })
      const all = Effect.fnUntraced(function* (stream: typeof slow) {
        const found: Array<string | undefined> = []
        while (!found.includes(last)) found.push(...ids(yield* stream.next))
        return found
      })
      yield* all(fast)
      // The tail keeps 500 Events, and this stream has read none of them yet.
      expect(new Set(yield* all(slow)).size).toBe(count + 1)
    }).pipe(Effect.scoped),
  )

  it.effect("skip no Event that commits later with a smaller number", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const feed = yield* ChangeFeed
      const stream = yield* opened(org)
      const [first, second] = [yield* transaction(org), yield* transaction(org)]
      // The transaction with the later id inserts first and gets the smaller `seq`.
      yield* second.insert
      yield* first.insert
      yield* first.commit
      feed.announce({ org })
      expect(ids(yield* stream.next)).toEqual([first.id])
      yield* second.commit
      feed.announce({ org })
      expect(ids(yield* stream.next)).toEqual([second.id])
    }),
  )

  it.effect("return an Event once the transactions before it have ended, without another notification", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const feed = yield* ChangeFeed
      const stream = yield* opened(org)
      const before = yield* transaction(org)
      const id = yield* insertEvent(org, "mail.stopped")
      feed.announce({ org })
      const next = yield* Effect.forkChild(stream.next)
      const seen = reads
      yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => reads > seen + 2 })
      expect(next.pollUnsafe()).toBe(undefined)
      yield* before.commit
      expect(ids(yield* Fiber.join(next))).toEqual([before.id, id])
    }),
  )

  it.effect("share one read of an Event", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const feed = yield* ChangeFeed
      const streams = yield* Effect.forEach(Array.from({ length: 50 }), () => opened(org), { concurrency: 10 })
      const waiting = yield* Effect.forEach(streams, ({ next }) => Effect.forkChild(next, { startImmediately: true }))
      const seen = reads
      const id = yield* insertEvent(org, "mail.stopped")
      feed.announce({ org })
      for (const fiber of waiting) expect(ids(yield* Fiber.join(fiber))).toEqual([id])
      expect(reads - seen).toBeLessThan(10)
    }),
  )

  it.effect("catch up from an old position and continue live", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const feed = yield* ChangeFeed
      const identity = yield* makeUuidV7
      yield* opened(org, identity)
      const made = yield* Effect.forEach(Array.from({ length: 250 }), (_, i) =>
        Effect.map(insertEvent(org, "mail.stopped", i % 2 === 0 ? identity : null), (id) => (i % 2 === 0 ? [id] : [])),
      )
      feed.announce({ org: identity })
      const stream = yield* (yield* EventTails).open(org, identity, { xid: 0n, seq: 0n })
      const got: Array<string | undefined> = []
      while (got.length < 125) got.push(...ids(yield* stream.next))
      expect(got).toEqual(made.flat())
      const live = yield* insertEvent(org, "mail.stopped", identity)
      feed.announce({ org: identity })
      expect(ids(yield* stream.next)).toEqual([live])
    }),
  )
})

/** The change feed over the store: notifications between processes, and the detection of lost notifications. */
import { expect, layer } from "@effect/vitest"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import * as Stores from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Context, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { waitUntil } from "../harness/Actors.ts"
import { databaseLayer } from "../harness/Database.ts"
import { insertEvent, makeOrg } from "../harness/Events.ts"
import { rows } from "../harness/Stores.ts"

/**
 * Waits for the next notification while the test's clock advances through re-checks and pauses. Each poll queries the store, so that the
 * clock does not run ahead of it. The step is small: a notification that needs a new connection must arrive before the timeout of the
 * statement, since it is not repeated.
 */
const next = Effect.fnUntraced(function* <A>(changes: { readonly await: Effect.Effect<A> }) {
  const fiber = yield* Effect.forkChild(changes.await, { startImmediately: true })
  yield* waitUntil(
    Effect.map(
      rows((sql) => sql`select 1`),
      () => fiber.pollUnsafe(),
    ),
    (exit) => exit !== undefined,
    "1 millis",
  )
  return yield* Fiber.join(fiber)
})

/** Starts a feed as another process would, and returns it once it is listening. */
const process = Effect.gen(function* () {
  const feed = Context.get(yield* Layer.build(Layer.fresh(ChangeFeed.layer)), ChangeFeed)
  // Opening the connection wakes followers. The first re-check also wakes subscribers of a key.
  yield* next(yield* feed.follow("begin"))
  return feed
})

/** Consumes the first notification, which every new subscription receives; tests look at later ones. */
const skipFirst = (subscriptions: ReadonlyArray<{ readonly await: Effect.Effect<void> }>) =>
  Effect.forEach(subscriptions, next, { discard: true })

const isQuiet = Effect.fnUntraced(function* (changes: { readonly await: Effect.Effect<void> }) {
  const fiber = yield* Effect.forkChild(changes.await, { startImmediately: true })
  yield* Effect.yieldNow
  const quiet = fiber.pollUnsafe() === undefined
  yield* Fiber.interrupt(fiber)
  return quiet
})

layer(databaseLayer)("the feed", (it) => {
  it.effect("notifies subscribers of a key in the same process and in other processes", () =>
    Effect.gen(function* () {
      const [here, there] = [yield* process, yield* process]
      const [org, identity, other] = [yield* makeUuidV7, yield* makeUuidV7, yield* makeUuidV7]
      const near = yield* here.subscribe(org)
      const far = [
        yield* there.subscribe(org),
        yield* there.subscribe(identity),
        yield* there.subscribe(other),
      ] as const
      yield* skipFirst([near, ...far])
      here.announce({ org, identity })
      yield* next(near)
      yield* next(far[0])
      yield* next(far[1])
      expect(yield* isQuiet(far[2])).toBe(true)
    }),
  )

  it.effect("names the changed resources, of the Org or of an Identity, in the same process and in others", () =>
    Effect.gen(function* () {
      const [here, there] = [yield* process, yield* process]
      const org = yield* makeUuidV7
      const pages = [yield* here.resources(org), yield* there.resources(org)]
      for (const changed of [
        { resource: "session", handle: null },
        { resource: "messages", handle: "ada" },
      ]) {
        here.changed(org, changed)
        for (const page of pages) expect(yield* next(page)).toEqual([changed])
      }
      // A page that opens now learns what changed while it was read; a page of another Org does not.
      expect((yield* there.resources(org)).recent).toEqual([
        { resource: "session", handle: null },
        { resource: "messages", handle: "ada" },
      ])
      expect((yield* there.resources(yield* makeUuidV7)).recent).toEqual([])
      // Ten seconds later, a page has read what changed before it opened.
      yield* TestClock.adjust("10 seconds")
      expect((yield* there.resources(org)).recent).toEqual([])
    }),
  )

  it.effect("detects an Event whose notification was lost, and wakes its subscribers", () =>
    Effect.gen(function* () {
      const feed = yield* process
      const [org, other, identity] = [yield* makeOrg, yield* makeOrg, yield* makeUuidV7]
      const concerned = [yield* feed.subscribe(org), yield* feed.subscribe(identity)] as const
      const unconcerned = yield* feed.subscribe(other)
      yield* skipFirst([...concerned, unconcerned])
      yield* insertEvent(org, "mail.stopped", identity)
      yield* next(concerned[0])
      yield* next(concerned[1])
      expect(yield* isQuiet(unconcerned)).toBe(true)
    }),
  )

  it.effect("wakes all subscribers when its connection is back, and receives notifications again", () =>
    Effect.gen(function* () {
      const [here, there] = [yield* process, yield* process]
      const [org, other] = [yield* makeUuidV7, yield* makeUuidV7]
      const subscriptions = [yield* there.subscribe(org), yield* there.subscribe(other)] as const
      yield* skipFirst(subscriptions)
      const tunnels = yield* there.follow("tunnel")
      const sql = yield* Stores.Writes
      yield* sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and state = 'idle' and query like 'LISTEN %'`
      yield* skipFirst(subscriptions)
      expect(yield* next(tunnels)).toBe(undefined)
      here.announce({ org })
      yield* next(subscriptions[0])
      yield* sql`select pg_notify('svc_feed', 'tunnel/ada')`
      expect([...((yield* next(tunnels)) ?? [])]).toEqual(["tunnel/ada"])
    }),
  )
})

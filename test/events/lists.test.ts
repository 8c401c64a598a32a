/** Lists and streams of Events: their content and order, and which Events they do not contain yet. */
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { Unhurried } from "@svc/cluster/store/Database"
import { fromPublic, makeUuidV7, toPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Latch } from "effect"
import { newHandle } from "../harness/Client.ts"
import { insertEvent, settled } from "../harness/Events.ts"
import { makeOrg, rows, setClockToNow, storesLayer } from "../harness/Stores.ts"

const list = (
  org: string,
  filter: { readonly limit?: number; readonly cursor?: string; readonly handle?: string } = {},
) =>
  Effect.gen(function* () {
    const { events, next_cursor } = yield* (yield* EventQueries).list(org, { limit: 10, ...filter })
    return { ids: events.map(({ id }) => fromPublic("evt_", id)), next_cursor }
  })

layer(storesLayer)("the list of Events", (it) => {
  it.effect("reaches every Event by paging, whatever is added meanwhile", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const made = yield* Effect.forEach(Array.from({ length: 7 }), () => insertEvent(org, "mail.stopped"))
      yield* settled
      const seen: Array<string | undefined> = []
      let cursor: string | null | undefined
      while (cursor !== null) {
        const page: Effect.Success<ReturnType<typeof list>> = yield* list(
          org,
          cursor === undefined ? { limit: 3 } : { limit: 3, cursor },
        )
        seen.push(...page.ids)
        cursor = page.next_cursor
        yield* insertEvent(org, "mail.started")
      }
      expect(seen).toEqual(made.toReversed())
    }),
  )

  it.effect("omits Events that a running transaction may precede", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const first = yield* insertEvent(org, "mail.stopped")
      yield* settled
      const sql = yield* Unhurried
      const [numbered, end] = [Latch.makeUnsafe(), Latch.makeUnsafe()]
      const running = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`select pg_current_xact_id()::text`
            yield* numbered.open
            yield* end.await
          }),
        ),
      )
      yield* numbered.await
      const second = yield* insertEvent(org, "mail.started")
      expect((yield* list(org)).ids).toEqual([first])
      const { last } = yield* (yield* EventQueries).beginning(org, null, undefined)
      expect(last).toBe(toPublic("evt_", first))
      // A list that is requested while a transaction is open waits a short time for its end.
      const waiting = yield* Effect.forkChild(list(org), { startImmediately: true })
      yield* rows((sql) => sql`select 1`)
      yield* end.open
      expect((yield* Fiber.join(waiting)).ids).toEqual([second, first])
      yield* Fiber.join(running)
    }),
  )

  it.effect("only has the Events of its Org, and rejects cursors of another Org", () =>
    Effect.gen(function* () {
      const [org, other] = [yield* makeOrg, yield* makeOrg]
      for (let n = 0; n < 3; n++) yield* insertEvent(org, "mail.stopped")
      yield* settled
      const { next_cursor } = yield* list(org, { limit: 1 })
      expect((yield* list(other)).ids).toEqual([])
      const [handle, id, sql] = [newHandle("listed"), yield* makeUuidV7, yield* Unhurried]
      yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${handle}, ${handle}, ${org}, now())`
      yield* sql`
        insert into identity (id, canonical, handle, org_id, status, saga, created_at)
        values (${id}, ${handle}, ${handle}, ${org}, 'ready', '{}', now())`
      expect((yield* list(org, { handle: handle.toUpperCase() })).ids).toEqual([])
      expect(yield* Effect.flip(list(other, { handle }))).toMatchObject({ code: "not_found" })
      for (const cursor of [next_cursor!, "nonsense"]) {
        expect(yield* Effect.flip(list(other, { cursor }))).toMatchObject({ code: "invalid_cursor" })
      }
    }),
  )
})

const origin = { xid: 0n, seq: 0n }

layer(storesLayer)("a stream of Events", (it) => {
  /** Returns the Events after a position, as one page. */
  const since = (org: string, identityId: string | null, position = origin, limit = 10) =>
    Effect.flatMap(EventQueries, (queries) =>
      Effect.map(queries.since(org, identityId, position, limit), (page) => ({
        ...page,
        ids: page.events.map(({ event }) => fromPublic("evt_", event.id)),
      })),
    )

  it.effect("has the Events of its Org or Identity, as lists do, without tests of Webhooks", () =>
    Effect.gen(function* () {
      const [org, other, ada, bob] = [yield* makeOrg, yield* makeOrg, yield* makeUuidV7, yield* makeUuidV7]
      const first = yield* insertEvent(org, "mail.stopped", ada)
      const hidden = yield* insertEvent(org, "webhook.test", ada)
      const second = yield* insertEvent(org, "mail.started", bob)
      const foreign = yield* insertEvent(other, "mail.stopped", bob)
      yield* settled
      expect(yield* list(org, { limit: 2 })).toEqual({ ids: [second, first], next_cursor: null })
      const { beginning, read } = yield* EventQueries
      for (const [identity, ids] of [
        [null, [first, second]],
        [ada, [first]],
        [bob, [second]],
      ] as const) {
        expect((yield* since(org, identity)).ids).toEqual(ids)
        expect((yield* beginning(org, identity, undefined)).last).toBe(toPublic("evt_", ids.at(-1)!))
      }
      expect((yield* read(org, toPublic("evt_", first))).id).toBe(toPublic("evt_", first))
      for (const call of [
        read(org, toPublic("evt_", foreign)),
        read(org, toPublic("evt_", hidden)),
        beginning(org, null, toPublic("evt_", foreign)),
        beginning(org, null, toPublic("evt_", "0199d3c0-5e0f-4c4e-9b1a-3f2d6c8e4a10")),
      ])
        expect(yield* Effect.flip(call as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
      const later = { xid: 1n << 60n, seq: 0n }
      expect(yield* since(org, null, later)).toMatchObject({ ids: [], at: later, more: false, unsettled: false })
    }),
  )

  it.effect("is in the order in which transactions began, in pages of any size", () =>
    Effect.gen(function* () {
      const [org, sql] = [yield* makeOrg, yield* Unhurried]
      const ids = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_current_xact_id()::text`
          const later = yield* insertEvent(org, "mail.started")
          const [event] = yield* sql<{ id: string }>`
            insert into event (id, org_id, type, data, created_at) values (uuidv7(), ${org}, 'mail.stopped', '{}', now())
            returning id`
          return [event!.id, later]
        }),
      )
      yield* settled
      const one = yield* since(org, null, origin, 1)
      const two = yield* since(org, null, one.at, 1)
      expect([one, two].flatMap((page) => page.ids)).toEqual(ids)
    }),
  )

  it.effect("resumes after a deleted Event with the Events that are less than a minute older", () =>
    Effect.gen(function* () {
      yield* setClockToNow
      const [org, other, now] = [yield* makeOrg, yield* makeOrg, yield* Clock.currentTimeMillis]
      const before = (owner: string, millis: number) => insertEvent(owner, "mail.stopped", null, new Date(now - millis))
      yield* before(org, 61_000)
      const recent = yield* before(org, 59_000)
      yield* before(other, 61_000)
      yield* settled
      const { at } = yield* (yield* EventQueries).beginning(org, null, toPublic("evt_", yield* makeUuidV7))
      expect((yield* since(org, null, at)).ids).toEqual([recent])
    }),
  )
})

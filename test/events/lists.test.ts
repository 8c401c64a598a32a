/** Lists of Events: their content and order, and which Events they do not contain yet. */
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { Unhurried } from "@svc/cluster/store/Database"
import { fromPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { insertEvent, settled } from "../harness/Events.ts"
import { makeOrg, rows, storesLayer } from "../harness/Stores.ts"

const list = (org: string, filter: { readonly limit?: number; readonly cursor?: string } = {}) =>
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
      for (const cursor of [next_cursor!, "nonsense"]) {
        expect(yield* Effect.flip(list(other, { cursor }))).toMatchObject({ code: "invalid_cursor" })
      }
    }),
  )
})

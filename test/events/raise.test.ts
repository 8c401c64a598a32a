/** Raising Events in the statement that causes them, on a real database. */
import { raise, raiseForOrg, raiseTest } from "@svc/cluster/events/Raise"
import { Unhurried } from "@svc/cluster/store/Database"
import { revokeUncollected } from "@svc/cluster/housekeeping/Housekeeping"
import type { Initiator } from "@svc/domain/account/Initiator"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { at, identity, org, Org } from "./Org.ts"

const by: Initiator = { kind: "admin_key", credentialId: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a12", requestId: "req_1" }
const hook = (n: number) => `0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b0${n}`

interface Row {
  readonly id: string
  readonly org_id: string
  readonly identity_id: string | null
  readonly handle: string | null
  readonly type: string
  readonly data: unknown
  readonly created_at: Date
  readonly caused_by: unknown
}

/** Raises Events for a gate with the given number of rows, then removes and returns all stored Events and deliveries. */
const behind = Effect.fnUntraced(function* (rows: number, ctes: Statement.Fragment) {
  const sql = yield* Org
  yield* sql`with gate as (select n as number, 'key ' || n as name from generate_series(1, ${rows}::int) n), ${ctes} select 1`
  return yield* take
})

const take = Effect.gen(function* () {
  const sql = yield* Org
  const events =
    yield* sql<Row>`delete from event returning id, org_id, identity_id, handle, type, data, created_at, caused_by`
  const deliveries = yield* sql<{
    webhook_id: string
    event_id: string
    event_type: string
    status: string
    id: string
  }>`
    delete from delivery returning id, webhook_id, event_id, event_type, status`
  return { events, deliveries }
})

const subscribe = Effect.fnUntraced(function* (hooks: ReadonlyArray<readonly [string, string, string]>) {
  const sql = yield* Org
  yield* sql`delete from webhook`
  for (const [id, type, status] of hooks) {
    yield* sql`
      insert into webhook (id, identity_id, url, event_types, status, created_at)
      values (${id}, ${identity.id}, 'https://example.org', ${[type]}::text[], ${status}, ${at})`
  }
})

layer(Org.layer)("an Event", (it) => {
  for (const rows of [0, 1, 3]) {
    it.effect(`is raised for each of ${rows} rows of its gate, with literal members and members from the row`, () =>
      Effect.gen(function* () {
        const sql = yield* Org
        yield* subscribe([[hook(1), "email.refused", "active"]])
        const change = { sql, identity, at, by }
        const { events, deliveries } = yield* behind(
          rows,
          raise(change, "gate", "email.refused", {
            reason: "full",
            from: "o'neill@example.org",
            count: sql`gate.number`,
          }),
        )
        assert.deepStrictEqual(
          events.map(({ data }) => data),
          Array.from({ length: rows }, (_, n) => ({ reason: "full", from: "o'neill@example.org", count: n + 1 })),
        )
        assert.strictEqual(new Set(events.map(({ id }) => id)).size, rows)
        assert.deepStrictEqual(
          deliveries.map(({ event_id, webhook_id }) => [event_id, webhook_id]).toSorted(),
          events.map(({ id }) => [id, hook(1)]).toSorted(),
        )
      }),
    )
  }

  it.effect("stores its Identity, its time and its initiator", () =>
    Effect.gen(function* () {
      const sql = yield* Org
      const id = hook(9)
      const { events } = yield* behind(1, raise({ sql, identity, at, by }, "gate", "identity.ready", {}, { id }))
      assert.deepInclude(events[0], {
        id,
        org_id: org,
        identity_id: identity.id,
        handle: "ada",
        type: "identity.ready",
        data: {},
        created_at: at,
        caused_by: { kind: "admin_key", credential_id: by.credentialId, request_id: "req_1" },
      })
    }),
  )

  it.effect("has a created_at that follows seq when writers insert in another order than they began", () =>
    Effect.gen(function* () {
      const sql = yield* Org
      yield* subscribe([[hook(1), "*", "active"]])
      const began = Date.now() - 5_000
      const times = Array.from({ length: 8 }, (_, n) => new Date(began + n * 100)).toReversed()
      const change = { sql, identity, by }
      const data = { by: "system", reason: null } as const
      for (const at of times) {
        yield* sql`with gate as (select 1), ${raise({ ...change, at }, "gate", "mail.stopped", data)} select 1`
        const column = { ...change, at: sql`gate.at` }
        yield* sql`with gate as (select ${at}::timestamptz as at), ${raise(column, "gate", "mail.started", data)} select 1`
      }
      const events = yield* sql<{ at: Date; due: Date }>`
        select e.created_at as at, d.next_attempt_at as due from event e join delivery d on d.event_id = e.id order by e.seq`
      const created = events.map(({ at }) => at.getTime())
      assert.strictEqual(events.length, 2 * times.length)
      assert.deepStrictEqual(created, created.toSorted())
      // Deliveries are due at the time of the write.
      assert.deepStrictEqual(
        events.map(({ due }) => due),
        times.flatMap((at) => [at, at]),
      )
      yield* take
    }),
  )

  it.effect("is queued for the active Webhooks that subscribe to it, except the excluded one", () =>
    Effect.gen(function* () {
      const sql = yield* Org
      yield* subscribe([
        [hook(1), "*", "active"],
        [hook(2), "mail.stopped", "active"],
        [hook(3), "mail.started", "active"],
        [hook(4), "*", "disabled"],
        [hook(5), "*", "active"],
      ])
      const change = { sql, identity, at, by }
      const data = { by: "system", reason: null } as const
      const reached = Effect.fnUntraced(function* (ctes: Statement.Fragment) {
        const { deliveries } = yield* behind(1, ctes)
        assert.isTrue(
          deliveries.every(({ event_type, status }) => event_type === "mail.stopped" && status === "queued"),
        )
        return deliveries.map(({ webhook_id }) => webhook_id).toSorted()
      })
      assert.deepStrictEqual(yield* reached(raise(change, "gate", "mail.stopped", data)), [hook(1), hook(2), hook(5)])
      assert.deepStrictEqual(yield* reached(raise(change, "gate", "mail.stopped", data, { except: hook(5) })), [
        hook(1),
        hook(2),
      ])
    }),
  )

  it.effect("of the Org has no Identity and is queued for no Webhook", () =>
    Effect.gen(function* () {
      const sql = yield* Org
      yield* subscribe([[hook(1), "*", "active"]])
      const change = { sql, org: sql`${org}::uuid`, at, by }
      const { events, deliveries } = yield* behind(
        2,
        sql`${raiseForOrg(change, "gate", "api_key.revoked", {
          key_id: hook(9),
          name: sql`gate.name`,
          scope: "org",
          identity_id: null,
          handle: null,
        })}, ${raiseForOrg({ ...change, org }, "gate", "identity.deleted", { identity_id: sql`uuidv7()`, handle: sql`gate.name` }, { as: "ended" })}`,
      )
      assert.deepStrictEqual(deliveries, [])
      assert.deepStrictEqual(
        events.map(({ type, identity_id, handle }) => [type, identity_id, handle]).toSorted(),
        ["api_key.revoked", "api_key.revoked", "identity.deleted", "identity.deleted"].map((type) => [
          type,
          null,
          null,
        ]),
      )
      assert.deepStrictEqual(
        events.filter(({ type }) => type === "api_key.revoked").map(({ data }) => data),
        ["key 1", "key 2"].map((name) => ({ key_id: hook(9), name, scope: "org", identity_id: null, handle: null })),
      )
    }),
  )

  it.effect("is raised for the Org of each key that was not collected and not revoked before", () =>
    Effect.gen(function* () {
      const sql = yield* Org
      yield* sql`
        insert into api_key (id, org_id, name, token_prefix, token_hash, created_at, revoked_at)
        values (${hook(1)}, ${org}, 'laptop', '', '3', ${at}, null), (${hook(2)}, ${org}, 'late', '', '4', ${at}, null),
               (${hook(3)}, ${org}, 'revoked', '', '5', ${at}, ${at})`
      for (const [key, expires] of [
        [hook(1), "2026-01-01"],
        [hook(2), "infinity"],
        [hook(3), "2026-01-01"],
      ]) {
        yield* sql`
          insert into device_authorization
            (id, device_hash, user_code, name, status, org_id, key_id, sealed_key, interval_seconds, created_at, expires_at)
          values (${key}, ${key}::text::bytea, ${key}, '', 'approved', ${org}, ${key}, 'sealed', 5, ${at}, ${expires}::timestamptz)`
      }
      yield* Effect.provideService(revokeUncollected, Unhurried, sql)
      const { events } = yield* take
      assert.deepStrictEqual(
        events.map(({ org_id, type, data, caused_by }) => ({ org_id, type, data, caused_by })),
        [
          {
            org_id: org,
            type: "api_key.revoked",
            data: { key_id: hook(1), name: "laptop", scope: "org", identity_id: null, handle: null },
            caused_by: { kind: "system", credential_id: null, request_id: null },
          },
        ],
      )
    }),
  )

  it.effect("of a test is queued for its Webhook only, and once if the command is repeated", () =>
    Effect.gen(function* () {
      const sql = yield* Org
      yield* subscribe([
        [hook(1), "*", "active"],
        [hook(2), "email.received", "active"],
      ])
      const test = { eventId: hook(7), deliveryId: hook(8), webhookId: hook(2) }
      const again = sql`with gate as (select 1), ${raiseTest({ sql, identity, at, by }, "gate", test)} select 1`
      yield* again
      yield* again
      const { events, deliveries } = yield* take
      assert.deepStrictEqual(
        events.map(({ id, type, data }) => ({ id, type, data })),
        [{ id: hook(7), type: "webhook.test", data: {} }],
      )
      assert.deepStrictEqual(
        deliveries.map(({ id, webhook_id, event_id }) => ({ id, webhook_id, event_id })),
        [{ id: hook(8), webhook_id: hook(2), event_id: hook(7) }],
      )
    }),
  )
})

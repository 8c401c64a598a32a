/** The rows of deliveries: which ones are leased, and what the record of an attempt leaves. */
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Writes } from "@svc/cluster/store/Database"
import { pause } from "@svc/cluster/store/Deadline"
import { bucketOf, UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { Deliveries, type Leased, type Outcome, overdue } from "@svc/cluster/webhooks/Deliveries"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { newHandle } from "../harness/Client.ts"
import { makeOrg, quietFeed, rows, storesLayer } from "../harness/Stores.ts"

/** The notifications and counters of the deliveries. */
const told: Array<unknown> = []

const recorded = Layer.mergeAll(
  Layer.effect(
    ChangeFeed,
    Effect.map(ChangeFeed, (feed) => ({
      ...feed,
      changed: (...change: ReadonlyArray<unknown>) => void told.push(["changed", ...change]),
      announce: (change: unknown) => void told.push(["announce", change]),
    })),
  ).pipe(Layer.provide(quietFeed)),
  Layer.mock(UsageCounters)({ add: (...count) => void told.push(["usage", ...count]) }),
)

const makeOwner = Effect.gen(function* () {
  const sql = yield* Writes
  const [id, orgId, handle] = [yield* makeUuidV7, yield* makeOrg, newHandle("ada")]
  yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${handle}, ${handle}, ${orgId}, now())`
  yield* sql`
    insert into identity (id, canonical, handle, org_id, status, saga, created_at)
    values (${id}, ${handle}, ${handle}, ${orgId}, 'ready', '{}', now())`
  return { id, orgId, handle }
})
type Owner = Effect.Success<typeof makeOwner>

const makeWebhook = Effect.fnUntraced(function* (owner: Owner, status = "active") {
  const [sql, id] = [yield* Writes, yield* makeUuidV7]
  yield* sql`
    insert into webhook (id, identity_id, url, event_types, status, created_at)
    values (${id}, ${owner.id}, 'https://receiver.example/', '{*}', ${status}, now())`
  return { id, owner }
})

interface Queued {
  readonly due: Date
  readonly status?: "queued" | "retrying"
  readonly type?: string
  /** The number of recorded attempts. */
  readonly attempts?: number
  readonly started?: Date
}

/** Queues a delivery of a new Event, and returns its id. */
const queue = Effect.fnUntraced(function* (
  { id, owner }: Effect.Success<ReturnType<typeof makeWebhook>>,
  { due, status = "queued", type = "mail.stopped", attempts = 0, started }: Queued,
) {
  const [sql, delivery, event] = [yield* Writes, yield* makeUuidV7, yield* makeUuidV7]
  const attempt = { started_at: due, duration_ms: 5, status_code: 500, error: null, response_body: null }
  const before = JSON.stringify(Array.from({ length: attempts }, (_, n) => ({ number: n + 1, ...attempt })))
  yield* sql`
    insert into event (id, org_id, identity_id, handle, type, data, created_at)
    values (${event}, ${owner.orgId}, ${owner.id}, ${owner.handle}, ${type}, '{}', ${due})`
  yield* sql`
    insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, attempts, attempt_started_at, next_attempt_at, created_at)
    values (${delivery}, ${id}, ${owner.id}, ${event}, ${type}, ${status}, ${before}::jsonb, ${started ?? null}, ${due}, ${due})`
  return delivery
})

interface Row {
  readonly status: string
  readonly attempts: ReadonlyArray<unknown>
  readonly started: Date | null
  readonly next: Date | null
  readonly commit: string
}
const row = (id: string) =>
  Effect.map(
    rows(
      (sql) => sql<Row>`
        select status, attempts, attempt_started_at as started, next_attempt_at as next, xmin::text as commit from delivery where id = ${id}`,
    ),
    ([found]) => found!,
  )

const lease = (owner: Owner, now: Date, taken: ReadonlyMap<string, { first: number; retry: number }> = new Map()) =>
  Effect.flatMap(Deliveries, (deliveries) => deliveries.lease({ identityId: owner.id, taken, now }))
const ids = (leased: ReadonlyArray<Leased>) => leased.map(({ id }) => id)
const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))
const after = (time: Date, millis: number) => new Date(time.getTime() + millis)
const minute = 60_000

const fails: Outcome = { durationMs: 7, statusCode: null, error: "timeout", text: null }

layer(Deliveries.layer.pipe(Layer.provide(recorded), Layer.provideMerge(storesLayer)))("a delivery", (it) => {
  it.effect("is leased within the free places of its Webhook: first attempts by age, retries by due time", () =>
    Effect.gen(function* () {
      const [at, owner, other] = [yield* now, yield* makeOwner, yield* makeOwner]
      const [busy, free] = [yield* makeWebhook(owner), yield* makeWebhook(owner)]
      yield* queue(busy, { due: after(at, 1) })
      const firsts = yield* Effect.forEach([0, -5, -3, -4, -9], (due) => queue(busy, { due: after(at, due) }))
      const retries = yield* Effect.forEach([-1, -2, 0, -4, 1], (due) =>
        queue(busy, { due: after(at, due), status: "retrying", attempts: 1 }),
      )
      const alone = yield* queue(free, { due: at })
      yield* queue(yield* makeWebhook(owner, "disabled"), { due: at })
      const foreign = yield* queue(yield* makeWebhook(other), { due: at })
      const taken = new Map([[busy.id, { first: 1, retry: 2 }]])
      // Both Identities share a statement, and each gets its own deliveries.
      const [own, others] = yield* Effect.all([lease(owner, at, taken), lease(other, at)], { concurrency: "unbounded" })
      const expected = [...firsts.slice(0, 3), retries[1]!, retries[3]!, alone]
      expect(ids(own.leased)).toEqual(expected.toSorted())
      expect(own.leased.map(({ id, first }) => first === !retries.includes(id))).not.toContain(false)
      expect(ids(others.leased)).toEqual([foreign])
      for (const id of expected) expect(yield* row(id)).toMatchObject({ started: at, next: after(at, minute) })
      expect(yield* row(firsts[3]!)).toMatchObject({ started: null, next: after(at, -4) })
      // All places are taken, so the actor only learns when the next delivery is due.
      const full = new Map([[busy.id, { first: 4, retry: 5 }]])
      expect(yield* lease(owner, at, full)).toEqual({ leased: [], due: after(at, -9) })
      expect(yield* lease(other, at)).toEqual({ leased: [], due: after(at, minute) })
      expect(yield* lease(yield* makeOwner, at)).toEqual({ leased: [], due: null })
      // The rest is leased when there are places again.
      expect(ids((yield* lease(owner, at)).leased)).toEqual([...firsts.slice(3), retries[0]!, retries[2]!])
    }),
  )

  it.effect("is retried by the schedule unless the response is 2xx, and then its target is free", () =>
    Effect.gen(function* () {
      const [at, owner, deliveries] = [yield* now, yield* makeOwner, yield* Deliveries]
      const webhook = yield* makeWebhook(owner)
      const outcomes = [
        [199, 0, "retrying", 30_000],
        [200, 0, "delivered", null],
        [299, 6, "delivered", null],
        [300, 5, "retrying", 86_400_000],
        [null, 1, "retrying", 300_000],
      ] as const
      for (const [statusCode, attempts, status, wait] of outcomes) {
        const id = yield* queue(webhook, { due: at, attempts, status: attempts === 0 ? "queued" : "retrying" })
        const {
          leased: [leased],
        } = yield* lease(owner, at)
        told.length = 0
        const outcome = { durationMs: 7, statusCode, error: statusCode === null ? "timeout" : null, text: "body" }
        yield* deliveries.record(owner, leased!, outcome, after(at, 7))
        const next = wait === null ? null : after(at, wait)
        const attempt = { number: attempts + 1, started_at: at.toISOString(), duration_ms: 7, response_body: "body" }
        const found = yield* row(id)
        expect(found).toMatchObject({ status, started: null, next })
        expect(found.attempts).toHaveLength(attempts + 1)
        expect(found.attempts.at(-1)).toMatchObject({ ...attempt, status_code: statusCode, error: outcome.error })
        expect(told).toEqual([
          ["changed", owner.orgId, { resource: "deliveries", handle: owner.handle }],
          [
            "usage",
            { identity: owner.id },
            "delivery",
            { count: 1, failed: status === "delivered" ? 0 : 1, bucket: bucketOf(7), webhook: webhook.id },
          ],
        ])
      }
    }),
  )

  it.effect("raises webhook.failed for other Webhooks when its last attempt failed, and never for webhook.failed", () =>
    Effect.gen(function* () {
      const [at, owner, deliveries] = [yield* now, yield* makeOwner, yield* Deliveries]
      const [dead, watcher] = [yield* makeWebhook(owner), yield* makeWebhook(owner)]
      const events = rows(
        (sql) => sql<{ data: unknown; hooks: ReadonlyArray<string> }>`
          select data, array(select webhook_id from delivery where event_id = event.id) as hooks
          from event where identity_id = ${owner.id} and type = 'webhook.failed' and data <> '{}'::jsonb`,
      )
      const ended = Effect.fnUntraced(function* (queued: Partial<Queued>, outcome: Outcome) {
        const id = yield* queue(dead, { due: at, ...queued })
        const leased = (yield* lease(owner, at)).leased.find((one) => one.id === id)!
        told.length = 0
        yield* deliveries.record(owner, leased, outcome, at)
        expect(yield* row(id)).toMatchObject({ status: "failed", started: null, next: null })
        return { id, leased, told: told.map((one) => (one as ReadonlyArray<unknown>)[0]) }
      })
      const last = { status: "retrying", attempts: 6 } as const
      const loop = yield* ended({ ...last, type: "webhook.failed" }, fails)
      expect(loop.told).toEqual(["changed", "usage"])
      // The creator of the Webhook may not read the Event: nothing was sent, so nothing is counted or retried.
      const kept = yield* ended({}, { ...fails, error: "creator_revoked", withheld: true })
      expect(kept.told).toEqual(["changed"])
      expect(yield* events).toEqual([])
      const { id, leased, told: seen } = yield* ended(last, fails)
      expect(seen).toEqual(["announce", "changed", "usage"])
      expect(told[0]).toEqual(["announce", { org: owner.orgId, identity: owner.id }])
      const data = {
        webhook_id: toPublic("wh_", dead.id),
        delivery_id: toPublic("dlv_", id),
        event_id: toPublic("evt_", leased.event_id),
        event_type: "mail.stopped",
        attempts: 7,
        status_code: null,
        error: "timeout",
      }
      expect(yield* events).toEqual([{ data, hooks: [watcher.id] }])
    }),
  )

  it.effect("is recorded in one commit with the next lease, and by the holder of its lease only", () =>
    Effect.gen(function* () {
      const [at, owner, deliveries] = [yield* now, yield* makeOwner, yield* Deliveries]
      const webhook = yield* makeWebhook(owner)
      const first = yield* queue(webhook, { due: at })
      const { leased } = yield* lease(owner, at)
      const next = yield* queue(webhook, { due: at })
      const outcome = { ...fails, statusCode: 200, error: null }
      const [, again] = yield* Effect.all([deliveries.record(owner, leased[0]!, outcome, at), lease(owner, at)], {
        concurrency: "unbounded",
      })
      expect(ids(again.leased)).toEqual([next])
      const [done, begun] = [yield* row(first), yield* row(next)]
      expect([done.status, done.commit]).toEqual(["delivered", begun.commit])
      // Recording it again changes nothing, since the lease has ended.
      yield* deliveries.record(owner, leased[0]!, fails, at)
      expect((yield* row(first)).attempts).toHaveLength(1)
    }),
  )

  it.effect("is leased once if two processes lease it at the same time", () =>
    Effect.gen(function* () {
      const [sql, at, owner] = [yield* Writes, yield* now, yield* makeOwner]
      const id = yield* queue(yield* makeWebhook(owner), { due: at })
      const waits = rows(
        (reads) => reads`
          select from pg_stat_activity
          where wait_event_type = 'Lock' and query like '%busy as (%' and datname = current_database()`,
      )
      const second = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`update delivery set attempt_started_at = ${at}, next_attempt_at = ${after(at, minute)} where id = ${id}`
          const second = yield* Effect.forkChild(lease(owner, after(at, 1)))
          yield* Effect.repeat(Effect.andThen(pause(5), waits), { until: (waiting) => waiting.length > 0 })
          return second
        }),
      )
      expect(ids((yield* Fiber.join(second)).leased)).toEqual([])
      expect(yield* row(id)).toMatchObject({ started: at })
    }),
  )

  it.effect("is abandoned, and its Identity overdue, from the moment at which its lease expires", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [at, owner, other, deliveries] = [yield* now, yield* makeOwner, yield* makeOwner, yield* Deliveries]
      const started = after(at, -minute)
      const webhook = yield* makeWebhook(owner)
      const first = yield* queue(webhook, { due: at, started })
      const retry = yield* queue(webhook, { due: after(at, -1), started, status: "retrying", attempts: 1 })
      yield* queue(webhook, { due: after(at, 1), started })
      yield* queue(webhook, { due: at })
      yield* queue(yield* makeWebhook(other), { due: at, started })
      const found = yield* deliveries.abandoned(owner.id, at)
      expect(found.map(({ id, first, started_at }) => [id, first, started_at]).toSorted()).toEqual([
        [first, true, started],
        [retry, false, started],
      ])
      const late = (time: Date) => overdue(sql, time, 1_000)
      expect(yield* late(after(at, -2))).not.toContain(owner.handle)
      expect(yield* late(after(at, -1))).toContain(owner.handle)
      // Attempts in flight are recorded even if the Webhook is disabled meanwhile.
      yield* sql`update webhook set status = 'disabled' where id = ${webhook.id}`
      expect(yield* late(after(at, -1))).toContain(owner.handle)
      yield* sql`update delivery set attempt_started_at = null where webhook_id = ${webhook.id}`
      expect(yield* late(at)).not.toContain(owner.handle)
    }),
  )

  it.effect("shows that its Webhook fails if the last five that were attempted failed", () =>
    Effect.gen(function* () {
      const [sql, queries, at, owner] = [yield* Writes, yield* WebhookQueries, yield* now, yield* makeOwner]
      const webhook = yield* makeWebhook(owner)
      let minutes = 0
      const add = Effect.fnUntraced(function* (...statuses: ReadonlyArray<string>) {
        for (const status of statuses) {
          yield* sql`
            insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, created_at)
            values (${yield* makeUuidV7}, ${webhook.id}, ${owner.id}, ${yield* makeUuidV7}, 'mail.stopped', ${status},
                    ${after(at, ++minutes * minute)})`
        }
      })
      /** The minute in which the oldest of the failed deliveries was queued. */
      const since = Effect.map(queries.read(owner.id as IdentityId, webhook.id), ({ webhook: { failing_since } }) =>
        failing_since === null ? null : (failing_since.getTime() - at.getTime()) / minute,
      )
      expect(yield* since).toBeNull()
      yield* add("retrying", "failed", "retrying", "failed", "failed")
      expect(yield* since).toBe(1)
      yield* add("failed", "queued")
      expect(yield* since).toBe(2)
      yield* add("delivered", "failed", "failed", "failed", "failed")
      expect(yield* since).toBeNull()
      yield* add("failed")
      expect(yield* since).toBe(9)
      // Behind a long queue, the retries decide.
      yield* add(...Array.from({ length: 20 }, () => "queued"))
      expect(yield* since).toBe(1)
      yield* sql`update webhook set status = 'disabled' where id = ${webhook.id}`
      expect(yield* since).toBeNull()
    }),
  )
})

/** A Webhook delivery whose process crashed between the request and its record (docs/crash-matrix.md). */
import { makeUuidV7 } from "@svc/domain/Ids"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { pause } from "@svc/cluster/store/Deadline"
import { Timing } from "@svc/cluster/Timing"
import { UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { Deliveries } from "@svc/cluster/webhooks/Deliveries"
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Scope } from "effect"
import { newHandle } from "../harness/Client.ts"
import { awaitFiber, makeOrg, waitUntil } from "../harness/Actors.ts"
import { actorProcess, sharedServices } from "../harness/Processes.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { quietFeed } from "../harness/Stores.ts"

interface Row {
  readonly status: string
  readonly leased: boolean
  readonly attempts: ReadonlyArray<{
    readonly number: number
    readonly status_code: number | null
    error: string | null
  }>
}

const deliveryRow = (id: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<Row>`
      select status, attempts, attempt_started_at is not null as leased from delivery where id = ${id}`,
      ([row]) => row,
    ),
  )
const status = (handle: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ status: string }>`select status from identity where canonical = ${handle}`,
      ([row]) => row?.status,
    ),
  )
const delivered = (row: Row | undefined) => row?.status === "delivered"

/** Registers a Webhook of a new Identity, and sends it a delivery. */
const tested = Effect.fnUntraced(function* (handle: string, url: string, delivery_id: string) {
  const [org_id, webhook_id] = [yield* makeOrg, yield* makeUuidV7]
  const actor = (yield* Identities).of(handle)
  yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle }))
  yield* waitUntil(status(handle), (found) => found === "ready")
  yield* ask(actor.RegisterWebhook({ org_id, webhook_id, url, event_types: ["*"], description: null }))
  yield* ask(actor.TestWebhook({ org_id, webhook_id, delivery_id, event_id: delivery_id }))
})

const receiving = Effect.acquireRelease(
  Effect.promise(() => startReceiver()),
  ({ stop }) => Effect.promise(stop),
)

layer(sharedServices, { timeout: "60 seconds" })("an attempt that was never recorded", (it) => {
  it.effect("counts after its lease expired, and the delivery continues with the same Event id", () =>
    Effect.gen(function* () {
      const handle = newHandle("ada")
      const receiver = yield* receiving
      const delivery_id = yield* makeUuidV7
      yield* Effect.andThen(
        tested(handle, receiver.url, delivery_id),
        waitUntil(deliveryRow(delivery_id), delivered),
      ).pipe(Effect.provide(actorProcess()))
      // The state after the process crashed before it recorded the response.
      const sql = yield* Writes
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        update delivery set status = 'queued', attempts = '[]', attempt_started_at = ${at},
               next_attempt_at = ${new Date(at.getTime() + 60_000)}
        where id = ${delivery_id}`

      yield* Effect.gen(function* () {
        const repeated = yield* waitUntil(deliveryRow(delivery_id), delivered, (row) =>
          // The next lease records that the former one expired. The clock stops then, because a request with a timeout is in flight.
          row!.attempts.length === 0 ? "1 second" : 0,
        )
        expect(repeated.millis).toBeGreaterThanOrEqual(60_000)
        expect(repeated.value!.attempts).toMatchObject([
          { number: 1, status_code: null, error: "interrupted" },
          { number: 2, status_code: 200, error: null },
        ])
      }).pipe(Effect.provide(actorProcess()))
      expect(receiver.got).toHaveLength(2)
      expect(receiver.got[1]!.headers["webhook-id"]).toBe(receiver.got[0]!.headers["webhook-id"])
    }),
  )

  it.effect("is recorded, and not repeated, when a store that was away for seconds is back", () =>
    Effect.gen(function* () {
      const receiver = yield* receiving
      const delivery_id = yield* makeUuidV7
      const sql = yield* Writes
      // A rollback does not undo `nextval`, so the sequence shows that the outcome was refused.
      yield* sql`create sequence refused_outcomes`
      yield* sql`create function refuse_outcome() returns trigger language plpgsql as $$
        begin raise exception 'no outcome %', nextval('refused_outcomes') using errcode = '57P01'; end $$`
      yield* sql`create trigger refuse_outcome before update on delivery for each row
        when (new.status = 'delivered') execute function refuse_outcome()`
      yield* Effect.gen(function* () {
        yield* tested(newHandle("bob"), receiver.url, delivery_id)
        const refused = sql<{ is_called: boolean }>`select is_called from refused_outcomes`
        yield* waitUntil(refused, ([sequence]) => sequence!.is_called, 0)
        yield* sql`drop function refuse_outcome cascade`
        const { value } = yield* waitUntil(deliveryRow(delivery_id), delivered, Timing.recordPause)
        expect(value!.attempts).toMatchObject([{ number: 1, status_code: 200, error: null }])
      }).pipe(Effect.provide(actorProcess()))
      expect(receiver.got).toHaveLength(1)
      yield* sql`delete from delivery where id = ${delivery_id}`
    }),
  )

  it.effect("is not recorded by a process that lost its lease", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const deliveries = yield* Deliveries
      const [row] = yield* sql<{ id: string; identity_id: string; org_id: string }>`
        select d.id, d.identity_id, i.org_id from delivery d join identity i on i.id = d.identity_id`
      const { id, identity_id, org_id } = row!
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        update delivery set status = 'queued', attempts = '[]', attempt_started_at = null, next_attempt_at = ${at}
        where id = ${id}`
      const {
        leased: [leased],
      } = yield* deliveries.lease({ identityId: identity_id, taken: new Map(), now: at })
      expect(leased!.id).toBe(id)
      expect(yield* deliveries.lease({ identityId: identity_id, taken: new Map(), now: at })).toEqual({
        leased: [],
        due: new Date(at.getTime() + 60_000),
      })
      // The lease has expired, and another process has begun its own attempt.
      const later = new Date(at.getTime() + 61_000)
      yield* sql`update delivery set attempt_started_at = ${later} where id = ${id}`
      const owner = { id: identity_id, orgId: org_id, handle: "ada" }
      yield* deliveries.record(owner, leased!, { durationMs: 5, statusCode: 200, error: null, text: null }, later)
      expect(yield* deliveryRow(id)).toMatchObject({ status: "queued", attempts: [] })
      yield* deliveries.record(
        owner,
        { ...leased!, started_at: later },
        { durationMs: 5, statusCode: 200, error: null, text: null },
        later,
      )
      expect(yield* deliveryRow(id)).toMatchObject({ status: "delivered", attempts: [{ number: 1, status_code: 200 }] })
    }).pipe(Effect.provide(Deliveries.layer.pipe(Layer.provide([quietFeed, UsageCounters.layer])))),
  )

  it.effect("is recorded separately from other deliveries in the same statement", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const deliveries = yield* Deliveries
      const at = new Date(yield* Clock.currentTimeMillis)
      const [row] = yield* sql<{ id: string; identity_id: string; org_id: string }>`
        select d.id, d.identity_id, i.org_id from delivery d join identity i on i.id = d.identity_id`
      const { id, identity_id, org_id } = row!
      yield* sql`
        update delivery set status = 'queued', attempts = '[]', attempt_started_at = null, next_attempt_at = ${at}
        where id = ${id}`
      for (let n = 0; n < 2; n++) {
        yield* sql`
          insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, next_attempt_at, created_at)
          select ${yield* makeUuidV7}, webhook_id, identity_id, event_id, event_type, 'queued', ${at}, ${at} from delivery where id = ${id}`
      }
      const { leased } = yield* deliveries.lease({ identityId: identity_id, taken: new Map(), now: at })
      expect(leased).toHaveLength(3)
      const owner = { id: identity_id, orgId: org_id, handle: "ada" }
      // PostgreSQL cannot store NUL in a text. The attempts end together, so that they share a statement.
      const ends = yield* Effect.forEach(
        leased,
        (one, index) => {
          const text = index === 1 ? "\0" : "fine"
          return Effect.exit(deliveries.record(owner, one, { durationMs: 5, statusCode: 200, error: null, text }, at))
        },
        { concurrency: "unbounded" },
      )
      expect(ends.map(Exit.isSuccess)).toEqual([true, false, true])
      const found = yield* Effect.forEach(leased, (one) => deliveryRow(one.id))
      expect(found.map((one) => one?.status)).toEqual(["delivered", "queued", "delivered"])
    }).pipe(Effect.provide(Deliveries.layer.pipe(Layer.provide([quietFeed, UsageCounters.layer])))),
  )

  it.effect("is recorded as interrupted on shutdown, and the next process continues the delivery", () =>
    Effect.gen(function* () {
      const handle = newHandle("grace")
      let silent = true
      const receiver = yield* Effect.acquireRelease(
        Effect.promise(() => startReceiver((response) => void (silent || response.end()))),
        ({ stop }) => Effect.promise(stop),
      )
      const org_id = yield* makeOrg
      const [webhook_id, delivery_id] = [yield* makeUuidV7, yield* makeUuidV7]
      const scope = yield* Scope.make()
      yield* Effect.gen(function* () {
        const actor = (yield* Identities).of(handle)
        yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle }))
        yield* waitUntil(status(handle), (found) => found === "ready")
        const webhook = { org_id, webhook_id, url: receiver.url, event_types: ["*"], description: null }
        yield* ask(actor.RegisterWebhook(webhook))
        yield* ask(actor.TestWebhook({ org_id, webhook_id, delivery_id, event_id: delivery_id }))
        yield* waitUntil(
          Effect.sync(() => receiver.got.length),
          (count) => count === 1,
        )
      }).pipe(Effect.provideContext(yield* Layer.buildWithScope(actorProcess(), scope)))
      const leaving = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      const recorded = yield* waitUntil(deliveryRow(delivery_id), (row) => row?.status === "retrying")
      expect(recorded.value!.attempts).toMatchObject([{ number: 1, status_code: null, error: "interrupted" }])
      yield* awaitFiber(leaving)

      silent = false
      const repeated = yield* waitUntil(deliveryRow(delivery_id), delivered, (row) =>
        row!.leased ? 0 : "1 second",
      ).pipe(Effect.provide(actorProcess()))
      expect(repeated.value!.attempts).toMatchObject([{ error: "interrupted" }, { number: 2, status_code: 200 }])
      expect(receiver.got[1]!.headers["webhook-id"]).toBe(receiver.got[0]!.headers["webhook-id"])
    }),
  )

  it.effect("is made before a process exits that was about to lease it", () =>
    Effect.gen(function* () {
      const handle = newHandle("linus")
      const receiver = yield* Effect.acquireRelease(
        Effect.promise(() => startReceiver()),
        ({ stop }) => Effect.promise(stop),
      )
      const sql = yield* Writes
      const org_id = yield* makeOrg
      const [webhook_id, delivery_id] = [yield* makeUuidV7, yield* makeUuidV7]
      yield* Effect.gen(function* () {
        const actor = (yield* Identities).of(handle)
        yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle }))
        yield* waitUntil(status(handle), (found) => found === "ready")
        const webhook = { org_id, webhook_id, url: receiver.url, event_types: ["*"], description: null }
        yield* ask(actor.RegisterWebhook(webhook))
        yield* ask(actor.TestWebhook({ org_id, webhook_id, delivery_id, event_id: delivery_id }))
        yield* waitUntil(deliveryRow(delivery_id), delivered)
      }).pipe(Effect.provide(actorProcess()))
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(actorProcess(), scope)
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* sql`update delivery set status = 'queued', attempts = '[]', next_attempt_at = ${at} where id = ${delivery_id}`
      const reads = yield* Reads
      // Only the statement that leases this delivery waits for the lock of its row.
      const leaseWaits = reads`
        select from pg_stat_activity
        where wait_event = 'transactionid' and query like '%busy as (%' and datname = current_database()`
      const shutdown = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select from delivery where id = ${delivery_id} for update`
          yield* ask(Context.get(context, Identities).of(handle).Work(undefined, { discard: true }))
          yield* waitUntil(leaseWaits, (rows) => rows.length > 0, 0)
          const leaving = yield* Effect.forkIn(Scope.close(scope, Exit.void), yield* Effect.scope)
          // Gives the shutdown time to interrupt its fibers while the statement is still running.
          yield* pause(300)
          return leaving
        }),
      )
      yield* awaitFiber(shutdown, "1 millis")
      const [row] = yield* sql`select status, attempt_started_at as leased from delivery where id = ${delivery_id}`
      expect(row).toEqual({ status: "delivered", leased: null })
    }).pipe(Effect.scoped),
  )

  it.effect("ends the delivery of a Webhook that was disabled meanwhile", () =>
    Effect.gen(function* () {
      const handle = newHandle("dora")
      const org_id = yield* makeOrg
      const [webhook_id, delivery_id] = [yield* makeUuidV7, yield* makeUuidV7]
      const sql = yield* Writes
      yield* Effect.gen(function* () {
        const actor = (yield* Identities).of(handle)
        yield* ask(actor.Create({ org_id, identity_id: yield* makeUuidV7, handle }))
        yield* waitUntil(status(handle), (found) => found === "ready")
        const webhook = { org_id, webhook_id, url: "http://127.0.0.1:9/", event_types: ["*"], description: null }
        yield* ask(actor.RegisterWebhook(webhook))
      }).pipe(Effect.provide(actorProcess()))
      // The state after a crash during the attempt, and after the Webhook was disabled.
      const at = new Date(yield* Clock.currentTimeMillis)
      yield* sql`
        with raised as (
          insert into event (id, org_id, identity_id, handle, type, data, created_at)
          select ${delivery_id}::uuid, org_id, id, handle, 'mail.stopped', '{}', ${at}::timestamptz from identity
          where canonical = ${handle} returning id, identity_id, type
        )
        insert into delivery (id, webhook_id, identity_id, event_id, event_type, status, attempt_started_at,
                              next_attempt_at, created_at)
        select ${delivery_id}::uuid, ${webhook_id}::uuid, identity_id, id, type, 'queued', ${at}::timestamptz,
               ${new Date(at.getTime() + 60_000)}::timestamptz, ${at}::timestamptz from raised`
      yield* sql`update webhook set status = 'disabled' where id = ${webhook_id}`
      const ended = yield* waitUntil(deliveryRow(delivery_id), (row) => row?.status === "failed", "1 second").pipe(
        Effect.provide(actorProcess()),
      )
      expect(ended.value).toMatchObject({ leased: false, attempts: [{ number: 1, error: "interrupted" }] })
    }),
  )
})

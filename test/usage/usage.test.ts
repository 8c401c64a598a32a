/** Counts of usage in memory, in the store, and as `GET /api/usage` shows them, on the test's clock. */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { UsageSeries } from "@svc/domain/usage/UsageApi"
import { ask } from "@svc/cluster/actor/Ask"
import { Orgs } from "@svc/cluster/account/Orgs"
import { sweep } from "@svc/cluster/housekeeping/Housekeeping"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { TunnelUsage } from "@svc/cluster/tunnel/TunnelUsage"
import { bucketOf, millisOf, UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { spanOf, UsageQueries } from "@svc/cluster/usage/UsageQueries"
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { actors, identityOf, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { receivedMail } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { rows } from "../harness/Stores.ts"

const hour = 3_600_000

/** Counters of another process over the same store. */
const anotherProcess = Effect.map(Layer.build(Layer.fresh(UsageCounters.layer)), Context.get(UsageCounters))

/** Returns the values of these series by their time, oldest first. */
const pointsOf = (series: ReadonlyArray<UsageSeries>) => {
  const points = new Map<number, Record<string, unknown>>()
  for (const { metric, points: own } of series)
    for (const { at, value } of own) {
      const point = points.get(at.getTime()) ?? { at }
      points.set(at.getTime(), { ...point, [metric]: value })
    }
  return [...points.values()]
}

/** Reads the counts of the last two days: those of all, of each Webhook, and of each active Identity. */
const read = Effect.fnUntraced(function* (org: string, identity?: string, step: "hour" | "day" = "day") {
  const now = yield* Clock.currentTimeMillis
  const span = spanOf(step, new Date(now - 2 * 24 * hour), new Date(now))
  const subject = identity === undefined ? null : { id: identity as IdentityId, handle: "shown" }
  const series = yield* (yield* UsageQueries).read(org, subject, span, true)
  const own = series.filter(({ metric }) => metric !== "activity")
  expect(new Set(own.map((one) => one.identity))).toEqual(new Set([subject?.handle]))
  const others = own.filter(({ webhook_id }) => webhook_id === undefined)
  const webhooks = Map.groupBy(
    series.filter((one) => one.webhook_id !== undefined),
    (one) => one.webhook_id,
  )
  return {
    points: pointsOf(others),
    webhooks: [...webhooks.values()].flatMap(pointsOf),
    activity: series.filter(({ metric }) => metric === "activity"),
  }
})

const at = expect.any(Date)

const noon = Effect.flatMap(Clock.currentTimeMillis, (now) =>
  TestClock.setTime((Math.floor(now / (24 * hour)) + 1) * 24 * hour + 12 * hour + 60_000),
)

const limits = { mailboxBytes: 10_000 }
layer(Layer.provideMerge(TunnelUsage.layer, actors({ limits })), { timeout: "60 seconds" })("usage", (it) => {
  it.effect("adds the counts of two processes for an Identity and for its account", () =>
    Effect.gen(function* () {
      yield* noon
      const org = yield* makeOrg
      const [first, second] = [newHandle("ada"), newHandle("bob")]
      const [ada, bob] = [yield* makeIdentity(org, first), yield* makeIdentity(org, second)]
      const [one, other] = [yield* UsageCounters, yield* anotherProcess]
      one.add({ identity: ada.id }, "mail_received", { count: 2 })
      other.add({ identity: ada.id }, "mail_received", { count: 3 })
      other.add({ identity: bob.id }, "mail_received", { count: 5 })
      one.add({ org }, "call", { count: 1 })
      // The requests of HTTP are among those of the Tunnel.
      one.add({ identity: bob.id }, "tunnel_http", { count: 9 })
      one.add({ identity: ada.id }, "mailbox", { count: 700 })
      other.add({ identity: ada.id }, "mailbox", { count: 500 })
      yield* one.flush
      yield* other.flush
      expect((yield* read(org, ada.id)).points).toEqual([{ at, mail_received: 5, mailbox_bytes: 700 }])
      const account = yield* read(org)
      expect(account.points).toEqual([{ at, mail_received: 10, api_calls: 1 }])
      expect(account.activity).toEqual(
        [first, second].map((identity) => ({ metric: "activity", identity, points: [{ at, value: 5 }] })),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("writes every few seconds, and each count once", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const counters = yield* UsageCounters
      counters.add({ org }, "call", { count: 1 })
      expect((yield* read(org)).points).toEqual([])
      yield* TestClock.adjust(Timing.usageFlush)
      yield* waitUntil(read(org), ({ points }) => points.length > 0, 0)
      yield* TestClock.adjust(Timing.usageFlush)
      yield* counters.flush
      expect((yield* read(org)).points).toEqual([{ at, api_calls: 1 }])
      // A span ends before the step that begins at its end.
      const now = Math.floor((yield* Clock.currentTimeMillis) / hour) * hour
      const span = spanOf("hour", new Date(now - hour), new Date(now))
      const series = yield* (yield* UsageQueries).read(org, null, span, false)
      expect(series.flatMap(({ points }) => points)).toEqual([])
    }),
  )

  it.effect("writes the rest when a process stops, and counts it once after the restart", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const life = yield* Scope.make()
      const process = yield* Scope.provide(anotherProcess, life)
      process.add({ org }, "call", { count: 4 })
      yield* Scope.close(life, yield* Effect.exit(Effect.void))
      expect((yield* read(org)).points).toEqual([{ at, api_calls: 4 }])
      const restarted = yield* anotherProcess
      restarted.add({ org }, "call", { count: 1 })
      yield* restarted.flush
      yield* restarted.flush
      expect((yield* read(org)).points).toEqual([{ at, api_calls: 5 }])
    }).pipe(Effect.scoped),
  )

  it.effect("separates hours and days, and lists only steps with activity", () =>
    Effect.gen(function* () {
      yield* noon
      const org = yield* makeOrg
      const start = Math.floor((yield* Clock.currentTimeMillis) / hour) * hour
      const midnight = start + 12 * hour
      yield* TestClock.setTime(midnight - 2_000)
      // Its first flush is later than both counts, so that both are in memory at the same time.
      const counters = yield* anotherProcess
      counters.add({ org }, "call", { count: 1 })
      yield* TestClock.setTime(midnight + 1_000)
      counters.add({ org }, "call", { count: 2 })
      yield* counters.flush
      yield* TestClock.setTime(midnight + 3 * hour + 1_000)
      counters.add({ org }, "call", { count: 4 })
      yield* counters.flush
      const shown = (step: "hour" | "day") =>
        Effect.map(read(org, undefined, step), ({ points }) =>
          points.map((point) => [((point["at"] as Date).getTime() - midnight) / hour, point["api_calls"]]),
        )
      const ada = yield* makeIdentity(org, newHandle("hours"))
      counters.add({ identity: ada.id }, "mailbox", { count: 300 })
      yield* counters.flush
      yield* TestClock.adjust(hour)
      counters.add({ identity: ada.id }, "mailbox", { count: 500 })
      yield* counters.flush
      expect((yield* read(org, ada.id, "hour")).points.map((point) => point["mailbox_bytes"])).toEqual([300, 500])
      expect((yield* read(org, ada.id, "day")).points.map((point) => point["mailbox_bytes"])).toEqual([500])
      expect(yield* shown("hour")).toEqual([
        [-1, 1],
        [0, 2],
        [3, 4],
      ])
      expect(yield* shown("day")).toEqual([
        [-24, 1],
        [0, 6],
      ])
    }).pipe(Effect.scoped),
  )

  it.effect("shows an account nothing of another account", () =>
    Effect.gen(function* () {
      const [org, stranger] = [yield* makeOrg, yield* makeOrg]
      const { id } = yield* makeIdentity(org, newHandle("carol"))
      const counters = yield* UsageCounters
      counters.add({ identity: id }, "mail_received", { count: 1 })
      counters.add({ identity: id }, "delivery", { count: 1, webhook: yield* makeUuidV7 })
      yield* counters.flush
      const nothing = { points: [], webhooks: [], activity: [] }
      expect(yield* read(stranger)).toEqual(nothing)
      // The Identity of the other account, as if its id had been guessed.
      expect(yield* read(stranger, id)).toEqual(nothing)
      expect((yield* read(org, id)).webhooks).toHaveLength(1)
    }),
  )

  it.effect("lists the 200 busiest Identities of an account", () =>
    Effect.gen(function* () {
      const [org, sql] = [yield* makeOrg, yield* Writes]
      yield* sql`
        with named as (
          insert into handle (canonical, handle, org_id, registered_at)
          select name, name, ${org}, now() from (select ${newHandle("n")}::text || n as name from generate_series(100, 300) n) made
          returning canonical, org_id
        ),
        made as (
          insert into identity (id, canonical, handle, org_id, status, saga, created_at)
          select uuidv7(), canonical, canonical, org_id, 'ready', '{}', now() from named returning id, org_id, canonical
        )
        insert into usage_hour (org_id, identity_id, hour, kind, count, failed, bytes_in, bytes_out)
        select org_id, id, date_trunc('hour', ${new Date(yield* Clock.currentTimeMillis)}::timestamptz), 'mail_received',
               right(canonical, 3)::int, 0, 0, 0
        from made`
      // The least busy one of 201 is left out.
      expect((yield* read(org)).activity.map(({ points }) => points[0]!.value)).toEqual(
        Array.from({ length: 200 }, (_, n) => 300 - n),
      )
    }),
  )

  it.effect("skips Identities that were deleted meanwhile, and keeps the other counts of the statement", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const counters = yield* UsageCounters
      counters.add({ identity: yield* makeUuidV7 }, "mail_received", { count: 9 })
      counters.add({ org: yield* makeUuidV7 }, "call", { count: 9 })
      counters.add({ org }, "call", { count: 1 })
      yield* counters.flush
      expect((yield* read(org)).points).toEqual([{ at, api_calls: 1 }])
    }),
  )

  it.effect("is erased with its Identity, which the sums of the account outlive, and with the account", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const handle = newHandle("dora")
      const { id, actor } = yield* makeIdentity(org, handle)
      const counters = yield* UsageCounters
      counters.add({ identity: id }, "mail_received", { count: 3 })
      yield* counters.flush
      yield* ask(actor.Delete({ org_id: org }))
      yield* waitUntil(identityOf(handle), (row) => row === undefined)
      expect((yield* read(org, id)).points).toEqual([])
      expect((yield* read(org)).points).toEqual([{ at, mail_received: 3 }])
      yield* ask((yield* Orgs).of(org).Delete())
      const left = rows<{ n: number }>((sql) => sql`select count(*)::int as n from usage_hour where org_id = ${org}`)
      yield* waitUntil(left, ([row]) => row?.n === 0)
    }),
  )

  it.effect("is kept for 92 days", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const sql = yield* Writes
      yield* sql`insert into usage_hour (org_id, hour, kind, count, failed, bytes_in, bytes_out)
        select ${org}, now() - days * interval '1 day', 'call', days, 0, 0, 0 from unnest(array[91, 93]) as days`
      yield* sweep
      expect(yield* sql`select count::int from usage_hour where org_id = ${org}`).toEqual([{ count: 91 }])
    }),
  )

  it.effect("counts mail that was stored and mail that was refused", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const { id, actor } = yield* makeIdentity(org, newHandle("erin"))
      const mail = yield* receivedMail({ key: new TextEncoder().encode("the key of a transaction") })
      yield* ask(actor.ReceiveMail(mail))
      // The same transaction again stores nothing.
      yield* ask(actor.ReceiveMail(mail))
      yield* ask(actor.ReceiveMail(yield* receivedMail()))
      yield* Effect.flip(ask(actor.ReceiveMail(yield* receivedMail({ size: 9_000 }))))
      yield* ask(actor.RefuseMail({ reason: "full", from: "grace@example.org" }))
      yield* (yield* UsageCounters).flush
      expect((yield* read(org, id)).points).toEqual([{ at, mail_received: 2, mail_refused: 1, mailbox_bytes: 2_000 }])
    }),
  )

  it.effect("counts attempts per Webhook with their outcome and duration", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const receiver = yield* Effect.acquireRelease(
        Effect.promise(() => startReceiver()),
        ({ stop }) => Effect.promise(stop),
      )
      const { id, actor } = yield* makeIdentity(org, newHandle("frank"))
      const [webhook_id, delivery_id] = [yield* makeUuidV7, yield* makeUuidV7]
      yield* ask(
        actor.RegisterWebhook({ org_id: org, webhook_id, url: receiver.url, event_types: ["*"], description: null }),
      )
      yield* ask(actor.TestWebhook({ org_id: org, webhook_id, delivery_id, event_id: delivery_id }))
      const counters = yield* UsageCounters
      const counted = Effect.andThen(counters.flush, read(org, id))
      const { value } = yield* waitUntil(counted, ({ webhooks }) => webhooks.length > 0, 0)
      const some = expect.any(Number)
      expect(value.webhooks).toEqual([{ at, deliveries_succeeded: 1, delivery_ms_p50: some, delivery_ms_p95: some }])
      counters.add({ identity: id }, "delivery", {
        count: 3,
        failed: 3,
        bucket: bucketOf(20_000),
        webhook: yield* makeUuidV7,
      })
      const both = yield* counted
      const failed = { at, deliveries_failed: 3, delivery_ms_p50: millisOf(57), delivery_ms_p95: millisOf(57) }
      expect(both.webhooks).toHaveLength(2)
      expect(both.webhooks).toEqual(expect.arrayContaining([...value.webhooks, failed]))
      expect(both.points).toEqual([{ ...failed, deliveries_succeeded: 1 }])
    }).pipe(Effect.scoped),
  )

  it.effect("reports the duration that half and 95% of the attempts did not exceed", () =>
    Effect.gen(function* () {
      // 19 of 20 attempts took a millisecond, so 95% took no longer; with one more slow one, 95% did not.
      const p95 = Effect.fnUntraced(function* (slow: number) {
        const org = yield* makeOrg
        const counters = yield* UsageCounters
        counters.add({ org }, "delivery", { count: 10, bucket: 0 })
        counters.add({ org }, "delivery", { count: slow, bucket: 40 })
        counters.add({ org }, "delivery", { count: 9, bucket: 0 })
        yield* counters.flush
        return (yield* read(org)).points.map((point) => [point["delivery_ms_p50"], point["delivery_ms_p95"]])
      })
      expect(yield* p95(1)).toEqual([[1, 1]])
      expect(yield* p95(2)).toEqual([[1, 1024]])
    }),
  )

  it.effect("counts what an edge reports, with the durations of successful responses", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const { id } = yield* makeIdentity(org, newHandle("gina"))
      const { add } = yield* TunnelUsage
      const durations = new Map([30, 40].map((millis) => [bucketOf(millis), 1]))
      yield* add([{ identity_id: id, bytes_in: 10, bytes_out: 20, requests: 5, errors: 2, durations }])
      yield* (yield* UsageCounters).flush
      expect((yield* read(org, id)).points).toEqual([
        {
          at,
          tunnel_requests: 5,
          tunnel_errors: 2,
          tunnel_ms_p50: 32,
          tunnel_ms_p95: 38,
          tunnel_bytes: 30,
          tunnel_bytes_in: 10,
          tunnel_bytes_out: 20,
        },
      ])
    }),
  )
})

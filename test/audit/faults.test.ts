/** The audit log while the store does not accept its writes, on the test's clock. */
import { expect, it, layer } from "@effect/vitest"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Audit } from "@svc/cluster/audit/Audit"
import * as AuditPartitions from "@svc/cluster/audit/AuditPartitions"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import * as SealQueue from "@svc/cluster/audit/SealQueue"
import { Health } from "@svc/cluster/health/Health"
import { Unhurried } from "@svc/cluster/store/Database"
import { Vault } from "@svc/cluster/vault/Vault"
import { Clock, Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import { waitUntil } from "../harness/Actors.ts"
import { interruptAtLock, whileLocked } from "../harness/InterruptedStatement.ts"
import { patience } from "../harness/Eventually.ts"
import { makeOrg, rows, storesLayer } from "../harness/Stores.ts"
import { act, noKey } from "./Acts.ts"

const recorder = Audit.layer({ addresses: "network" })
const world = Layer.mergeAll(recorder, Health.layer).pipe(Layer.provideMerge(storesLayer))

/** Runs the effect while the table of the log is locked against writes; the rest of the store works. */
const whileAway = <A, E, R>(effect: Effect.Effect<A, E, R>) => whileLocked("audit", effect)

const recorded = (org: string) =>
  rows<{ request_id: string; count: number; address: string; outcome: string }>(
    (sql) => sql`select request_id, count, address, outcome from audit where org_id = ${org} order by id`,
  )

it.effect("The queue of marks continues after a failed mark", () =>
  Effect.gen(function* () {
    let marks = 0
    const store = () => Effect.suspend(() => (++marks === 1 ? Effect.fail("unreachable") : Effect.succeed([])))
    const queue = yield* SealQueue.make(store as never)
    for (const [at, org] of ["one", "two", "three"].entries()) {
      queue.touch([org])
      yield* Effect.promise(() => vi.waitFor(() => expect(marks).toBe(at + 1), patience))
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
  }),
)

it.effect("The queue of marks also marks an Org that is added while a round ends", () =>
  Effect.gen(function* () {
    for (let steps = 0; steps < 30; steps++) {
      let marks = 0
      const store = () => Effect.sync(() => (marks++, []))
      // The round yields to other fibers after each of its steps.
      const queue = yield* Effect.provideService(SealQueue.make(store as never), MaxOpsBeforeYield, 3)
      queue.touch(["one"])
      while (marks === 0) yield* Effect.yieldNow
      for (let step = 0; step < steps; step++) yield* Effect.yieldNow
      queue.touch(["two"])
      for (let step = 0; step < 60; step++) yield* Effect.yieldNow
      expect([steps, marks]).toEqual([steps, 2])
    }
  }),
)

layer(world, { timeout: "60 seconds" })("the audit log", (it) => {
  it.effect("shows no Vault value while it is unreachable", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const vault = yield* Vault
      const audit = yield* Audit
      const own = { org, identity: null }
      yield* vault.put(own, "token", { value: "hunter2" }, { ifTag: null, ifAbsent: false, ifPresent: false })
      const note = yield* audit.note(act(org, { class: "secret", action: "vault.value" }))
      const refused = yield* interruptAtLock(vault.value(own, "token", undefined, AuditWrite.toNote(note)), "audit")
      expect(refused).toMatchObject({ failure: { code: "audit_unavailable", status: 503 } })
      expect(JSON.stringify(refused)).not.toContain("hunter2")
      // The interrupted statement may have been committed. Showing the value without a record is not allowed.
      const before = (yield* recorded(org)).length
      const repeated = yield* audit.note(act(org, { class: "secret", action: "vault.value", requestId: "req_again" }))
      const shown = yield* vault.value(own, "token", undefined, AuditWrite.toNote(repeated))
      expect(shown.secret.value).toBe("hunter2")
      expect(yield* recorded(org)).toHaveLength(before + 1)
      const missing = yield* Effect.flip(
        vault.value(own, "nothing", undefined, AuditWrite.toNote(yield* audit.note(act(org)))),
      )
      expect(missing.code).toBe("not_found")
      expect(yield* recorded(org)).toHaveLength(before + 1)
    }),
  )

  it.effect("records each outcome of a command once, with the time of the first request", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      const command = yield* makeUuidV7
      const since = yield* Clock.currentTimeMillis
      yield* TestClock.adjust("1 minute")
      const outcomes = [
        { outcome: "failed", code: "internal" },
        { outcome: "failed", code: "unavailable" },
        { outcome: "allowed", code: null },
        { outcome: "allowed", code: null },
      ] as const
      for (const one of outcomes) yield* audit.record(act(org, { ...one, command }))
      const found = yield* rows<{ outcome: string; code: string | null; at: Date }>(
        (sql) => sql`select outcome, code, at from audit where org_id = ${org} order by outcome, code`,
      )
      expect(found).toEqual([outcomes[2], outcomes[0], outcomes[1]].map((one) => ({ ...one, at: new Date(since) })))
      // The log counts equal rejections together, without the id of a single request.
      for (let n = 0; n < 3; n++) yield* audit.record(act(org, { outcome: "refused", code: "not_found", command }))
      yield* waitUntil(
        rows<{ n: number }>(
          (sql) => sql`select sum(count)::int as n from audit where org_id = ${org} and outcome = 'refused'`,
        ),
        ([row]) => row?.n === 3,
        "10 seconds",
      )
    }),
  )

  it.effect("records a change later if it was unreachable, and rejects reading a secret meanwhile", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      yield* whileAway(
        Effect.gen(function* () {
          const later = yield* Effect.forkChild(audit.record(act(org, { requestId: "req_late" })))
          expect(yield* Effect.flip(audit.secret(act(org, { class: "secret" })))).toMatchObject({
            code: "audit_unavailable",
          })
          yield* Fiber.join(later)
        }),
      )
      const late = Effect.map(recorded(org), (found) => found.filter(({ request_id }) => request_id === "req_late"))
      const { value } = yield* waitUntil(late, (found) => found.length > 0, "1 second")
      expect(value).toEqual([{ request_id: "req_late", count: 1, address: "198.51.100.0/24", outcome: "allowed" }])
    }),
  )

  it.effect("reports the waiting records of all roles in a process", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const waits = Effect.map(PrometheusMetrics.format(), (text) => /^svc_audit_waiting (\d+)$/m.exec(text)?.[1])
      const first = yield* Audit
      const second = Context.get(yield* Layer.build(Layer.fresh(recorder)), Audit)
      // The recorder updates its metric shortly after the store has the record.
      const nothing = waitUntil(waits, (count) => count === "0", "1 second")
      yield* nothing
      yield* whileAway(
        Effect.gen(function* () {
          const records = [first, first, second].map((one) => one.record(act(org)))
          yield* Effect.all(records, { concurrency: "unbounded" })
          expect(yield* waits).toBe("3")
        }),
      )
      const { value } = yield* waitUntil(recorded(org), (found) => found.length === 3, "1 second")
      expect(value).toHaveLength(3)
      yield* nothing
    }),
  )

  it.effect("reports lost records", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      // Writes a record that the database rejects between two that it accepts.
      yield* audit.record(act(org, { requestId: "req_1", action: null as never }))
      yield* audit.record(act(org, { requestId: "req_2" }))
      const { value } = yield* waitUntil(
        rows<{ data: object }>((sql) => sql`select data from event where org_id = ${org} and type = 'audit.gap'`),
        (found) => found.length > 0,
        "1 second",
      )
      expect(value).toMatchObject([{ data: { count: 1 } }])
      expect(yield* recorded(org)).toMatchObject([{ request_id: "req_2" }])
    }),
  )

  it.effect("reports the period of lost records, but not to an account that is being deleted", () =>
    Effect.gen(function* () {
      const [leaving, org] = [yield* makeOrg, yield* makeOrg]
      const audit = yield* Audit
      yield* (yield* Unhurried)`update org set status = 'deleting' where id = ${leaving}`
      yield* audit.record(act(leaving, { action: null as never }))
      const times: Array<string> = []
      for (let n = 0; n < 3; n++) {
        times.push(new Date(yield* Clock.currentTimeMillis).toISOString())
        yield* audit.record(act(org, { action: null as never }))
        yield* TestClock.adjust("20 millis")
      }
      const { value } = yield* waitUntil(
        rows<{ data: object }>((sql) => sql`select data from event where org_id = ${org} and type = 'audit.gap'`),
        (found) => found.length > 0,
        "1 second",
      )
      expect(value).toEqual([{ data: { count: 3, since: times[0], until: times[2] } }])
      expect(yield* rows((sql) => sql`select from event where org_id = ${leaving}`)).toEqual([])
    }),
  )

  it.effect("summarizes rejections per credential and code in two records a minute", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      const refused = (code: string) => audit.record(act(org, { outcome: "refused", code }))
      for (let n = 0; n < 40; n++) yield* refused("foreign_identity")
      yield* refused("scope_missing")
      expect(yield* recorded(org)).toHaveLength(2)
      yield* TestClock.adjust("61 seconds")
      const { value } = yield* waitUntil(recorded(org), (found) => found.length > 2, "10 seconds")
      expect(value.map(({ count }) => count)).toEqual([1, 1, 39])
    }),
  )

  it.effect("summarizes repeated responses like rejections", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      for (let n = 0; n < 5; n++) yield* audit.record(act(org, { outcome: "repeated" }))
      expect(yield* recorded(org)).toHaveLength(1)
      yield* TestClock.adjust("61 seconds")
      const { value } = yield* waitUntil(recorded(org), (found) => found.length > 1, "10 seconds")
      expect(value.map(({ count }) => count)).toEqual([1, 4])
    }),
  )

  it.effect("keeps the counts of a process that shut down, but loses those of a killed process", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      for (const [ending, counts] of [
        ["in order", [1, 39]],
        ["killed", [1]],
      ] as const) {
        const scope = yield* Scope.make()
        const audit = Context.get(yield* Layer.buildWithScope(Layer.fresh(recorder), scope), Audit)
        for (let n = 0; n < 40; n++) yield* audit.record(act(org, { outcome: "refused", code: ending }))
        if (ending === "in order") yield* Scope.close(scope, Exit.void)
        const found = yield* rows<{ count: number }>(
          (sql) => sql`select count from audit where org_id = ${org} and code = ${ending} order by id`,
        )
        expect([ending, found.map(({ count }) => count)]).toEqual([ending, counts])
      }
    }),
  )

  it.effect("counts reads by the hour, the operation, the tool and the Identity", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const audit = yield* Audit
      // Starts at the beginning of an hour, so that the hour does not end during the test.
      const hour = Math.ceil((yield* Clock.currentTimeMillis) / 3_600_000) * 3_600_000
      yield* TestClock.setTime(hour + 1)
      const read = { org, kind: "admin_key", id: "one", action: "messages.read", tool: "", handle: "ada" } as const
      const counted = rows<{ action: string; count: number }>(
        (sql) => sql`
          select hour, action, tool, handle, count::int as count from audit_usage where org_id = ${org} order by count desc`,
      )
      for (let n = 0; n < 5; n++) audit.used(read)
      const others = [{ handle: "bob" }, { action: "messages.list" }, { tool: "mail_read" }]
      for (const [n, other] of others.entries()) for (let m = n; m < 3; m++) audit.used({ ...read, ...other })
      yield* waitUntil(counted, (found) => found.length > 0, "5 seconds")
      for (let n = 0; n < 3; n++) audit.used(read)
      const { value } = yield* waitUntil(counted, (found) => found[0]!.count > 5, "5 seconds")
      const row = { hour: new Date(hour), action: "messages.read", tool: "", handle: "ada" }
      expect(value).toEqual([{ ...row, count: 8 }, ...others.map((other, n) => ({ ...row, ...other, count: 3 - n }))])
    }),
  )
})

/** Stores without the background tasks of the log, since months pass in this test. */
const calendar = Layer.mergeAll(Health.layer).pipe(Layer.provideMerge(storesLayer))

layer(calendar, { timeout: "60 seconds" })("the months of the audit log", (it) => {
  it.effect("are created ahead, receive early records, and are dropped by age", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const sql = yield* Unhurried
      const now = yield* Clock.currentTimeMillis
      const months = Effect.map(
        rows<{ name: string }>(
          (sql) =>
            sql`select inhrelid::regclass::text as name from pg_inherits where inhparent = 'audit'::regclass order by 1`,
        ),
        (found) => found.map(({ name }) => name),
      )
      const nameOf = (later: number) =>
        `audit_${AuditPartitions.monthOf(now, later).toISOString().slice(0, 7).replace("-", "_")}`
      expect(yield* months).toEqual([...[0, 1, 2].map(nameOf), "audit_default"].toSorted())
      const stray = Effect.map(
        rows<{ n: number }>((sql) => sql`select count(*)::int as n from audit_default`),
        ([row]) => row!.n,
      )
      // The task that creates partitions did not run for months. Records outside all partitions are kept, and the health check warns.
      yield* TestClock.setTime(AuditPartitions.monthOf(now, 3).getTime() + 86_400_000)
      yield* sql`${AuditWrite.insert(sql, [yield* AuditWrite.make(noKey, act(org, { requestId: "req_stray" }))])}`
      expect(yield* stray).toBe(1)
      const health = yield* Health
      const report = Effect.scoped(
        Effect.gen(function* () {
          yield* Layer.build(AuditPartitions.health.pipe(Layer.provide(Layer.succeed(Health, health))))
          return (yield* Effect.forkChild(health.report).pipe(Effect.flatMap(Fiber.join))).components
        }),
      )
      expect(yield* report).toMatchObject([{ name: "audit", status: "warn" }])
      // A past month of the retention is created if it has records.
      yield* TestClock.setTime(AuditPartitions.monthOf(now, 4).getTime())
      yield* AuditPartitions.keep({ days: 365 })
      expect(yield* stray).toBe(0)
      expect(yield* recorded(org)).toMatchObject([{ request_id: "req_stray" }])
      expect(yield* months).toEqual([...[0, 1, 2, 3, 4, 5, 6].map(nameOf), "audit_default"].toSorted())
      expect(yield* report).toMatchObject([{ name: "audit", status: "pass" }])

      const present = yield* TestClock.setTime(AuditPartitions.monthOf(now, 5).getTime()).pipe(
        Effect.andThen(Clock.currentTimeMillis),
      )
      // A month that ended before the retention is not created for a record in the default partition.
      const old = new Date(present - 400 * 86_400_000)
      const [before, after] = [30.1, 29.9].map((days) => new Date(present - days * 86_400_000))
      yield* sql`
        insert into audit (id, at, org_id, class, action, actor_kind, outcome, via)
        values (uuidv7(), ${old}, ${org}, 'change', 'cards.patch', 'session', 'allowed', 'rest')`
      yield* sql`
        insert into audit_usage (org_id, hour, actor_kind, actor_id, action, tool, handle, count)
        select ${org}, hour, 'session', 'one', 'cards.read', '', '', 1 from unnest(${[before!, after!]}::timestamptz[]) as hour`
      yield* AuditPartitions.keep({ days: 30 })
      expect(yield* stray).toBe(0)
      expect(yield* sql`select hour from audit_usage where org_id = ${org}`).toEqual([{ hour: after }])
      expect(yield* months).toEqual([...[4, 5, 6, 7].map(nameOf), "audit_default"].toSorted())
      expect(yield* recorded(org)).toEqual([])
    }),
  )

  it.effect("are searched for unmarked records", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const org = yield* makeOrg
      // The state after a process crashed between writing the record and marking its Org for sealing.
      yield* sql`${AuditWrite.insert(sql, [yield* AuditWrite.make(noKey, act(org))])}`
      yield* AuditPartitions.markUnsealed(3_600_000)
      expect(yield* sql`select from audit_head where org_id = ${org} and due_at is not null`).toHaveLength(1)
    }),
  )
})

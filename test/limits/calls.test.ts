/** Limits of calls over two processes, with minutes of the test's clock. */
import { Orgs } from "@svc/cluster/account/Orgs"
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import type { PublicLimitName } from "@svc/domain/account/Policy"
import { makeUuidV7 } from "@svc/domain/Ids"
import { limitOf } from "@svc/domain/problems/Limit"
import { actors, makeOrg } from "../harness/Actors.ts"
import { rows, storesLayer } from "../harness/Stores.ts"

const window = Timing.callWindowMillis

/** Advances the clock to `seconds` after the beginning of the next minute. */
const nextMinute = (seconds = 0) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    TestClock.setTime((Math.floor(now / window) + 1) * window + seconds * 1000),
  )

/** Makes `calls` calls in turn from each process, and returns how many were allowed. */
const passed = <A, E>(processes: ReadonlyArray<Effect.Effect<A, E>>, calls: number) =>
  Effect.map(
    Effect.forEach(Array.from({ length: calls }), (_, n) => Effect.result(processes[n % processes.length]!)),
    (answers) => answers.filter(Result.isSuccess).length,
  )

const quotas = { calls: 60, identity_create: 10, handle_check: 5, tunnel_transfer: 1 }
const orgLimits = Effect.map(Layer.build(Layer.fresh(OrgLimits.layer(quotas))), Context.get(OrgLimits))

layer(actors({ quotas }))("an Org's calls", (it) => {
  it.effect("are limited to the exact quota per minute over all processes", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* orgLimits, yield* orgLimits]
      yield* nextMinute()
      const org = yield* makeOrg
      for (let minute = 0; minute < 3; minute++) {
        expect(yield* passed([one.take(org, "calls"), other.take(org, "calls")], 100)).toBe(60)
        yield* nextMinute(minute * 20)
      }
    }),
  )

  it.effect("report the remaining calls and the time to wait", () =>
    Effect.gen(function* () {
      const limits = yield* orgLimits
      yield* nextMinute()
      const org = yield* makeOrg
      yield* TestClock.adjust("14999 millis")
      expect(yield* limits.take(org, "handle_check")).toMatchObject({ quota: 5, resetSeconds: 46 })
      yield* passed([limits.take(org, "handle_check")], 5)
      yield* TestClock.adjust("29501 millis")
      const refused = yield* Effect.flip(limits.take(org, "handle_check"))
      expect(refused).toMatchObject({ code: "rate_limited", agent_hint: "wait", retry_after_seconds: 16 })
      expect(limitOf(refused)).toEqual({
        name: "handle_check",
        quota: 5,
        windowSeconds: 60,
        remaining: 0,
        resetSeconds: 16,
      })
    }),
  )

  it.effect("are counted per Org and policy", () =>
    Effect.gen(function* () {
      const limits = yield* orgLimits
      yield* nextMinute()
      const [org, other] = [yield* makeOrg, yield* makeOrg]
      expect(yield* passed([limits.take(org, "handle_check")], 20)).toBe(5)
      expect(yield* passed([limits.take(org, "identity_create")], 20)).toBe(10)
      expect(yield* passed([limits.take(other, "handle_check")], 20)).toBe(5)
      expect(yield* passed([limits.take(org, "calls"), limits.take(other, "calls")], 140)).toBe(120)
    }),
  )

  it.effect("get exactly their quota after a clock that was an hour ahead is corrected", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* orgLimits, yield* orgLimits]
      yield* nextMinute()
      const right = yield* Clock.currentTimeMillis
      const org = yield* makeOrg
      yield* TestClock.setTime(right + 3_600_000)
      expect(yield* passed([one.take(org, "calls")], 100)).toBe(60)
      yield* TestClock.setTime(right)
      expect(yield* passed([one.take(org, "calls"), other.take(org, "calls")], 100)).toBe(60)
      yield* nextMinute()
      expect(yield* passed([one.take(org, "calls"), other.take(org, "calls")], 100)).toBe(60)
    }),
  )

  it.effect("of a new account are accepted at the end of a minute and get the full quota in the next", () =>
    Effect.gen(function* () {
      const limits = yield* orgLimits
      yield* nextMinute(59)
      const org = yield* makeOrg
      const first = yield* passed([limits.take(org, "identity_create")], 20)
      expect(first).toBeGreaterThanOrEqual(1)
      expect(first).toBeLessThanOrEqual(10)
      yield* nextMinute()
      expect(yield* passed([limits.take(org, "identity_create")], 20)).toBe(10)
    }),
  )

  it.effect("leased in one minute are not made in the next", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* orgLimits, yield* orgLimits]
      yield* nextMinute()
      const org = yield* makeOrg
      expect(yield* passed([one.take(org, "calls")], 1)).toBe(1)
      yield* nextMinute()
      expect(yield* passed([other.take(org, "calls")], 100)).toBe(60)
      expect(yield* passed([one.take(org, "calls")], 10)).toBe(0)
    }),
  )

  it.effect("that remain do not include those leased in a former minute", () =>
    Effect.gen(function* () {
      const limits = yield* orgLimits
      yield* nextMinute()
      const org = yield* makeOrg
      yield* limits.take(org, "calls")
      expect(yield* limits.left(org, "calls")).toMatchObject({ remaining: 59 })
      yield* nextMinute()
      expect(yield* limits.left(org, "calls")).toMatchObject({ remaining: 60 })
    }),
  )

  it.effect("that wait for a lease at the same time share it", () =>
    Effect.gen(function* () {
      const limits = yield* orgLimits
      yield* nextMinute()
      const org = yield* makeOrg
      const calls = yield* Effect.forEach(Array.from({ length: 70 }), () => Effect.result(limits.take(org, "calls")), {
        concurrency: "unbounded",
      })
      expect(calls.filter(Result.isSuccess)).toHaveLength(60)
    }),
  )

  it.effect("leased to a crashed process are not reissued within the minute", () =>
    Effect.gen(function* () {
      const [crashed, other] = [yield* orgLimits, yield* orgLimits]
      yield* nextMinute()
      const org = yield* makeOrg
      // The process has leased a twentieth of the calls, but at least one, and uses one of it.
      expect(yield* passed([crashed.take(org, "calls")], 1)).toBe(1)
      expect(yield* passed([other.take(org, "calls")], 100)).toBe(57)
      expect(yield* passed([crashed.take(org, "handle_check")], 1)).toBe(1)
      expect(yield* passed([other.take(org, "handle_check")], 10)).toBe(4)
      yield* nextMinute()
      expect(yield* passed([other.take(org, "calls")], 100)).toBe(60)
    }),
  )

  it.effect("ask the Org's actor for one share at a time, and not again once the minute's calls are used up", () =>
    Effect.gen(function* () {
      let asked = 0
      // The last share of the minute.
      const lease = Effect.sync(() => (asked++, { granted: 3, left: 0, ends_in: window }))
      const orgs = { of: () => ({ Lease: () => Effect.andThen(Effect.yieldNow, lease) }) }
      const limits = yield* Effect.provideService(orgLimits, Orgs, orgs as never)
      yield* nextMinute()
      const take = Effect.result(limits.take("org", "calls"))
      const calls = (n: number) =>
        Effect.map(
          Effect.forEach(Array.from({ length: n }), () => take, { concurrency: "unbounded" }),
          (answers) => answers.filter(Result.isSuccess).length,
        )
      expect([yield* calls(8), asked]).toEqual([3, 1])
      expect([yield* calls(2), asked]).toEqual([0, 1])
      yield* nextMinute()
      expect([yield* calls(2), asked]).toEqual([2, 2])
    }).pipe(Effect.scoped),
  )
})

const publicQuotas = {
  profile: 3,
  hits: 3,
  device: 3,
  contact: 4,
  magic_link: 4,
  oauth_register: 3,
  oauth_authorize: 3,
  oauth_token: 3,
  oauth_token_failed: 3,
  oauth_document: 3,
}
/** Limits of calls that send a mail, which are counted over all processes. */
const shared = ["contact", "magic_link"]
const publicLimits = Effect.map(Layer.build(Layer.fresh(PublicLimits.layer(publicQuotas))), Context.get(PublicLimits))

layer(storesLayer)("unauthenticated calls", (it) => {
  it.effect.each(Object.entries(publicQuotas) as ReadonlyArray<[PublicLimitName, number]>)(
    "of %s are counted per minute",
    ([name, quota]) =>
      Effect.gen(function* () {
        const [one, other] = [yield* publicLimits, yield* publicLimits]
        const client = yield* makeUuidV7
        yield* nextMinute()
        yield* TestClock.adjust("9999 millis")
        expect(yield* one.take(name, client)).toMatchObject({ remaining: quota - 1, resetSeconds: 51 })
        expect(yield* passed([one.take(name, client)], 5)).toBe(quota - 1)
        const windowSeconds = 60
        expect(limitOf(yield* Effect.flip(one.take(name, client)))).toMatchObject({ name, quota, windowSeconds })
        expect(yield* passed([other.take(name, client)], 5)).toBe(shared.includes(name) ? 0 : quota)
        yield* TestClock.adjust("50000 millis")
        expect(yield* passed([one.take(name, client)], 5)).toBe(0)
        yield* TestClock.adjust("1 millis")
        expect(yield* passed([one.take(name, client)], 5)).toBe(quota)
      }),
  )

  it.effect("are counted per client and process", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* publicLimits, yield* publicLimits]
      yield* nextMinute(10)
      expect(yield* one.take("hits", "192.0.2.3")).toMatchObject({ remaining: 2, resetSeconds: 50 })
      expect(yield* passed([one.take("hits", "192.0.2.3")], 5)).toBe(2)
      expect(yield* passed([one.take("hits", "192.0.2.4")], 5)).toBe(3)
      expect(yield* passed([one.take("profile", "192.0.2.3")], 5)).toBe(3)
      expect(yield* passed([other.take("hits", "192.0.2.3")], 5)).toBe(3)
      expect(yield* Effect.flip(one.take("hits", "192.0.2.3"))).toMatchObject({
        code: "rate_limited",
        retry_after_seconds: 50,
      })
      yield* nextMinute()
      expect(yield* passed([one.take("hits", "192.0.2.3")], 5)).toBe(3)
    }),
  )

  it.effect("that send a mail are counted over all processes, without storing an address", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* publicLimits, yield* publicLimits]
      yield* nextMinute()
      const before = yield* rows((sql) => sql`select from public_limit`)
      const [client, neighbour] = [`192.0.2.5 ${yield* makeUuidV7}`, `192.0.2.5 ${yield* makeUuidV7}`]
      const both = [one.take("magic_link", client), other.take("magic_link", client)]
      expect(yield* passed(both, 12)).toBe(4)
      expect(yield* passed([one.take("contact", client), other.take("contact", client)], 12)).toBe(4)
      expect(yield* passed([other.take("magic_link", neighbour)], 6)).toBe(4)
      yield* nextMinute()
      expect(yield* passed(both, 12)).toBe(4)
      yield* TestClock.adjust("59001 millis")
      expect(yield* passed(both, 12)).toBe(0)
      const stored = yield* rows((sql) => sql<{ key: Uint8Array }>`select key from public_limit`)
      expect(stored).toHaveLength(before.length + 3)
      for (const { key } of stored) expect(Buffer.from(key).toString("latin1")).not.toContain("192.0.2")
    }),
  )
})

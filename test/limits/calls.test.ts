/** Limits of calls over two processes, with minutes of the test's clock. */
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
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
      yield* TestClock.adjust("15 seconds")
      expect(yield* limits.take(org, "handle_check")).toMatchObject({ quota: 5, resetSeconds: 45 })
      yield* passed([limits.take(org, "handle_check")], 5)
      yield* TestClock.adjust("29500 millis")
      const refused = yield* Effect.flip(limits.take(org, "handle_check"))
      expect(refused).toMatchObject({ code: "rate_limited", agent_hint: "wait", retry_after_seconds: 16 })
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
      // The process has leased a block of calls, and uses one of it.
      expect(yield* passed([crashed.take(org, "calls")], 1)).toBe(1)
      const rest = yield* passed([other.take(org, "calls")], 100)
      expect(rest).toBeGreaterThan(30)
      expect(rest).toBeLessThanOrEqual(59)
      yield* nextMinute()
      expect(yield* passed([other.take(org, "calls")], 100)).toBe(60)
    }),
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
const publicLimits = Effect.map(Layer.build(Layer.fresh(PublicLimits.layer(publicQuotas))), Context.get(PublicLimits))

layer(storesLayer)("unauthenticated calls", (it) => {
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
      const both = [one.take("magic_link", "192.0.2.5"), other.take("magic_link", "192.0.2.5")]
      expect(yield* passed(both, 12)).toBe(4)
      expect(yield* passed([one.take("contact", "192.0.2.5"), other.take("contact", "192.0.2.5")], 12)).toBe(4)
      expect(yield* passed([other.take("magic_link", "192.0.2.6")], 6)).toBe(4)
      yield* nextMinute()
      expect(yield* passed(both, 12)).toBe(4)
      const stored = yield* rows((sql) => sql<{ key: Uint8Array }>`select key from public_limit`)
      expect(stored).toHaveLength(3)
      for (const { key } of stored) expect(Buffer.from(key).toString("latin1")).not.toContain("192.0.2")
    }),
  )
})

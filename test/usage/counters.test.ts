/** Durations, and counts in memory until the store has them. */
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { bucketOf, millisOf, UsageCounters } from "@svc/cluster/usage/UsageCounters"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"

describe("Durations", () => {
  it("are known to within 9%, from a millisecond on", () => {
    for (const millis of [1, 1.5, 7, 50, 333, 15_000])
      expect(Math.abs(millisOf(bucketOf(millis)) - millis)).toBeLessThanOrEqual(Math.max(0.5, millis * 0.0906))
    expect([0, 0.3].map(bucketOf)).toEqual([0, 0])
  })
})

describe("Counts in memory", () => {
  /** Counters over a store that fails with these errors first, and the sums of each statement that it received. */
  const counters = Effect.fnUntraced(function* (...failures: ReadonlyArray<SqlError.SqlError | undefined>) {
    const statements: Array<ReadonlyArray<{ readonly identity_id: string; readonly count: number }>> = []
    const left = [...failures]
    const sql = (_: TemplateStringsArray, sums: string) =>
      Effect.suspend(() => {
        statements.push(JSON.parse(sums))
        const failure = left.shift()
        return failure === undefined ? Effect.succeed([]) : Effect.fail(failure)
      })
    const store = Layer.succeed(Writes, sql as never)
    const { add } = Context.get(yield* Layer.build(UsageCounters.layer.pipe(Layer.provide(store))), UsageCounters)
    return { statements, add, count: (identity: string) => add({ identity }, "call", { count: 1 }) }
  })
  const sqlError = (code: string) =>
    new SqlError.SqlError({
      reason: new SqlError.UnknownError({ cause: { code }, message: code, operation: "execute" }),
    })

  it.effect("are at most 20,000 sums until they are stored", () =>
    Effect.gen(function* () {
      const { statements, count } = yield* counters()
      for (let n = 0; n <= 20_000; n++) count(`i${n}`)
      count("i0")
      yield* TestClock.adjust(Timing.usageFlush)
      expect(statements.map((sums) => [sums.length, sums[0], sums.at(-1)])).toMatchObject([
        [20_000, { identity_id: "i0", count: 2 }, { identity_id: "i19999", count: 1 }],
      ])
      count("i20000")
      yield* TestClock.adjust(Timing.usageFlush)
      yield* TestClock.adjust(Timing.usageFlush)
      expect(statements.slice(1)).toMatchObject([[{ identity_id: "i20000", count: 1 }]])
    }).pipe(Effect.scoped),
  )

  it.effect("are separate for each Webhook, duration and kind", () =>
    Effect.gen(function* () {
      const { statements, add } = yield* counters()
      const of = { identity: "i" }
      for (const webhook of ["w", "v", "w"]) add(of, "delivery", { count: 1, webhook, bucket: 2 })
      add(of, "delivery", { count: 1, webhook: "w", bucket: 3 })
      add(of, "tunnel_http", { count: 1, bucket: 2 })
      yield* TestClock.adjust(Timing.usageFlush)
      expect(statements).toMatchObject([
        [
          { kind: "delivery", webhook_id: "w", bucket: 2, count: 2 },
          { kind: "delivery", webhook_id: "v", bucket: 2, count: 1 },
          { kind: "delivery", webhook_id: "w", bucket: 3, count: 1 },
          { kind: "tunnel_http", webhook_id: null, bucket: 2, count: 1 },
        ],
      ])
    }).pipe(Effect.scoped),
  )

  it.effect("are stored by the next attempt after a refusal, and not repeated after an unknown outcome", () =>
    Effect.gen(function* () {
      const refused = sqlError("23503")
      const lost = sqlError("57P01")
      const { statements, count } = yield* counters(lost, refused, refused, undefined, refused, refused, refused)
      const flushed = (name: string, expected: number) => {
        count(name)
        return Effect.map(TestClock.adjust(Timing.usageFlush), () => {
          expect(statements).toHaveLength(expected)
          expect(statements.at(-1)).toMatchObject([{ identity_id: name, count: 1 }])
        })
      }
      // The database may have committed this statement before the connection was lost.
      yield* flushed("one", 1)
      yield* flushed("two", 4)
      // A statement that is refused three times is lost, and later counts are stored.
      yield* flushed("three", 7)
      yield* flushed("four", 8)
    }).pipe(Effect.scoped),
  )
})

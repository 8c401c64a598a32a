import { settledOf } from "@svc/cluster/store/SettledReads"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"

// A fragment of this test is its text, since no statement is run.
const sql = (([text]: ReadonlyArray<string>) => text) as never

it.effect("a list has rows that settle while it waits, and leaves out those that do not", () =>
  Effect.gen(function* () {
    for (const [settlesAt, expected] of [
      [2, ["true", "true", "true"]],
      [Infinity, [...Array(25).fill("true"), "settled"]],
    ] as const) {
      const conditions: Array<unknown> = []
      const found = (which: unknown) =>
        Effect.sync(() => {
          conditions.push(which)
          return [{ n: conditions.length, settled: which === "settled" || conditions.length > settlesAt }]
        })
      const rows = yield* settledOf(sql, "settled" as never, found)
      expect([rows, conditions]).toEqual([[{ n: expected.length, settled: true }], expected])
    }
  }),
)

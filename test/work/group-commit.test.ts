/** The rules of {@link GroupCommit}, with statements whose results the test decides. */
import type { Sql } from "@svc/cluster/store/Database"
import * as GroupCommit from "@svc/cluster/store/GroupCommit"
import { expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlError } from "effect/sql"
import { describe } from "vitest"

const failure = (reason: SqlError.SqlError["reason"]) => new SqlError.SqlError({ reason })
const taken = failure(new SqlError.ConstraintError({ message: "taken", cause: undefined }))
const lost = failure(new SqlError.ConnectionError({ message: "lost", cause: undefined }))
const limits = { atOnce: 1, most: 10 }

/** Stores words, several at a time; a statement with the word "taken" or "lost" fails. */
const words = () => {
  const statements: Array<ReadonlyArray<string>> = []
  const store = (items: ReadonlyArray<string>) =>
    Effect.suspend(() => {
      statements.push(items)
      if (items.includes("lost")) return Effect.fail(lost)
      if (items.includes("taken")) return Effect.fail(taken)
      return Effect.succeed(items.map((item) => Exit.succeed(item.toUpperCase())))
    })
  return { statements, store }
}

describe("GroupCommit", () => {
  it.effect("stores what waits at the same time in one statement", () =>
    Effect.gen(function* () {
      const { statements, store } = words()
      const share = yield* GroupCommit.make(store, limits)
      const results = yield* Effect.forEach(["a", "b", "c"], share, { concurrency: "unbounded" })
      expect(results).toEqual(["A", "B", "C"])
      expect(statements).toEqual([["a", "b", "c"]])
    }).pipe(Effect.scoped),
  )

  it.effect("fails only the item that makes the statement fail", () =>
    Effect.gen(function* () {
      const { statements, store } = words()
      const share = yield* GroupCommit.make(store, limits)
      const results = yield* Effect.forEach(["a", "taken", "c"], (word) => Effect.exit(share(word)), {
        concurrency: "unbounded",
      })
      expect(results).toEqual([Exit.succeed("A"), Exit.fail(taken), Exit.succeed("C")])
      expect(statements).toEqual([["a", "taken", "c"], ["a"], ["taken"], ["c"]])
    }).pipe(Effect.scoped),
  )

  it.effect("fails all items after a transient failure and repeats nothing", () =>
    Effect.gen(function* () {
      const { statements, store } = words()
      const share = yield* GroupCommit.make(store, limits)
      const results = yield* Effect.forEach(["a", "lost", "c"], (word) => Effect.exit(share(word)), {
        concurrency: "unbounded",
      })
      expect(results).toEqual([Exit.fail(lost), Exit.fail(lost), Exit.fail(lost)])
      expect(statements).toHaveLength(1)
    }).pipe(Effect.scoped),
  )

  it.effect("stores a skipped item alone, after waiting for its row in a separate statement", () =>
    Effect.gen(function* () {
      const statements: Array<readonly [GroupCommit.Patience | "locks", ReadonlyArray<string>]> = []
      const transactions: Array<number> = []
      const sql = {
        withTransaction: <A, E, R>(inside: Effect.Effect<A, E, R>) =>
          Effect.ensuring(
            inside,
            Effect.sync(() => transactions.push(statements.length)),
          ),
      } as unknown as Sql
      const lock = (item: string) => Effect.sync(() => statements.push(["locks", [item]]))
      const share = yield* GroupCommit.makeSkipping(
        (items: ReadonlyArray<string>, patience) =>
          Effect.sync(() => {
            statements.push([patience, items])
            return items.map((item) => Exit.succeed(patience === "skips" && item === "held" ? undefined : item))
          }),
        (result) => result === undefined,
        { sql, lock },
        limits,
      )
      expect(yield* Effect.forEach(["a", "held", "c"], share, { concurrency: "unbounded" })).toEqual(["a", "held", "c"])
      expect(statements).toEqual([
        ["skips", ["a", "held", "c"]],
        ["locks", ["held"]],
        ["waits", ["held"]],
      ])
      // One transaction of both, so that the lock is held while the item is stored.
      expect(transactions).toEqual([3])
    }).pipe(Effect.scoped),
  )
})

/** Summaries of repeated refusals: within a minute, one record for the first and one with the number of the others. */
import { expect, it } from "@effect/vitest"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import * as Refusals from "@svc/cluster/audit/Refusals"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"

const act = (more: Partial<Act> = {}): Act =>
  ({
    org: "org",
    actor: { kind: "admin_key", id: "key" },
    identity: undefined,
    class: "auth",
    action: "messages.list",
    outcome: "refused",
    code: "scope_missing",
    source: { via: "rest" },
    ...more,
  }) as Act

/** Returns the summaries and the records that they keep, as the action and the number. */
const make = Effect.gen(function* () {
  const kept: Array<readonly [string, number]> = []
  const refusals = yield* Refusals.make(({ action }, count) => Effect.sync(() => void kept.push([action, count])))
  return { kept, ...refusals }
})

it("Rejected and repeated calls and opening links are summarized, other operations are not", () => {
  const allowed = act({ outcome: "allowed" })
  const counted = [
    act(),
    act({ outcome: "repeated" }),
    { ...allowed, source: { ...allowed.source, via: "tunnel" } as const },
  ]
  expect([...counted, allowed].map(Refusals.areCounted)).toEqual([true, true, true, false])
})

describe("Refusals of a credential", () => {
  it.effect("are one record and one summary within a minute, under the last operation", () =>
    Effect.gen(function* () {
      const { kept, record } = yield* make
      yield* record(act())
      yield* record(act({ action: "messages.read" }))
      yield* record(act({ action: "threads.list" }))
      expect(kept).toEqual([["messages.list", 1]])
      yield* TestClock.adjust("2 minutes")
      expect(kept).toEqual([
        ["messages.list", 1],
        ["threads.list", 2],
      ])
      yield* record(act())
      expect(kept.at(-1)).toEqual(["messages.list", 1])
    }),
  )

  it.effect("of a minute that ended before the next flush are summarized by the next refusal", () =>
    Effect.gen(function* () {
      const { kept, record, flush } = yield* make
      // The minute ends between two flushes.
      yield* TestClock.adjust("1 second")
      yield* record(act())
      yield* record(act({ action: "threads.list" }))
      yield* TestClock.adjust("59 seconds")
      const before = kept.length
      yield* TestClock.adjust("1 second")
      yield* record(act({ action: "messages.read" }))
      yield* flush
      expect(kept.slice(0, before)).toEqual([["messages.list", 1]])
      expect(kept.slice(before)).toEqual([
        ["threads.list", 1],
        ["messages.read", 1],
      ])
    }),
  )

  it.effect("that are pending are recorded at the end, once", () =>
    Effect.gen(function* () {
      const { kept, record, flush } = yield* make
      for (let n = 0; n < 3; n++) yield* record(act())
      yield* flush
      yield* flush
      expect(kept.map(([, count]) => count)).toEqual([1, 2])
    }),
  )

  it.effect("are summarized by reason; other operations by their action", () =>
    Effect.gen(function* () {
      const { kept, record } = yield* make
      const different: ReadonlyArray<Partial<Act>> = [
        {},
        { code: "network_not_allowed" },
        { org: "other" },
        { actor: { kind: "admin_key", id: "other" } as never },
        { actor: { kind: "session", id: "key" } as never },
        { actor: { kind: "nobody", id: null } as never, identity: { id: "ada", handle: "ada" } },
        { actor: { kind: "nobody", id: null } as never, identity: { id: "bob", handle: "bob" } },
        { class: "change" },
        { outcome: "repeated", code: undefined },
        { outcome: "repeated", code: undefined, action: "messages.read" },
      ] as never
      for (const more of different) yield* record(act(more))
      expect(kept.map(([, count]) => count)).toEqual(different.map(() => 1))
      for (const more of different) yield* record(act(more))
      expect(kept).toHaveLength(different.length)
    }),
  )

  it.effect("are followed for 20,000 credentials and reasons; those of others are recorded one by one", () =>
    Effect.gen(function* () {
      const { kept, record } = yield* make
      // The minute ends between two flushes.
      yield* TestClock.adjust("1 second")
      for (let n = 0; n <= 20_000; n++) yield* record(act({ code: String(n) as never }))
      for (const code of ["0", "19999", "20000", "20000"]) yield* record(act({ code: code as never }))
      expect(kept.length).toBe(20_001 + 2)
      yield* TestClock.adjust("60 seconds")
      // The summary of the followed one's former minute, and the first refusal of its next minute.
      for (let n = 0; n < 3; n++) yield* record(act({ code: "0" as never }))
      expect(kept.length).toBe(20_001 + 4)
      yield* TestClock.adjust("10 seconds")
      expect(kept.length).toBe(20_001 + 5)
      for (let n = 0; n < 2; n++) yield* record(act({ code: "20000" as never }))
      expect(kept.length).toBe(20_001 + 6)
    }),
  )
})

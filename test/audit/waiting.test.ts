/** Records that wait for the store, without a store: the test says which statements it accepts. */
import { Audit } from "@svc/cluster/audit/Audit"
import * as ReadCounts from "@svc/cluster/audit/ReadCounts"
import * as SealQueue from "@svc/cluster/audit/SealQueue"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Latch, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { act } from "./Acts.ts"

interface Statement {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
}

/** A client that gives each statement to `run`, as its text and its values. */
const client = (run: (statement: Statement) => Effect.Effect<ReadonlyArray<unknown>, unknown>) => {
  const literal = (text: string) => ({ text, values: [] })
  const partOf = (value: any): Statement =>
    typeof value?.text === "string"
      ? value
      : // Several statements that the library has joined.
        (value?.segments?.find((part: Statement) => typeof part?.text === "string") ?? { text: "?", values: [value] })
  const statement = (parts: ReadonlyArray<string> | string, ...values: ReadonlyArray<unknown>) => {
    if (typeof parts === "string") return literal(parts)
    const nested = values.map(partOf)
    const made = {
      text: parts.map((part, at) => part + (nested[at]?.text ?? "")).join(""),
      values: nested.flatMap((one) => one.values),
    }
    return Object.assign(
      Effect.suspend(() => run(made)),
      made,
      { segments: [made] },
    )
  }
  return Object.assign(statement, { literal }) as unknown as Writes["Service"]
}

/** A recorder whose store accepts, postpones or refuses each statement with records. */
const recording = Effect.gen(function* () {
  const state = {
    /** Decides about a statement with the records of these requests. */
    judge: (of: ReadonlyArray<string>): "kept" | "later" | "refused" | "hangs" => (of.length > 0 ? "kept" : "refused"),
    /** Runs before a gap is stored. */
    gap: Effect.void as Effect.Effect<void, unknown>,
  }
  const [kept, tries] = [[] as Array<string>, [] as Array<ReadonlyArray<string>>]
  const gaps: Array<Record<string, unknown>> = []
  const sql = client(({ text, values }) => {
    if (text.includes("insert into audit (")) {
      const ids = (JSON.parse(values[0] as string) as ReadonlyArray<{ request_id: string }>).map(
        ({ request_id }) => request_id,
      )
      tries.push(ids)
      const outcome = state.judge(ids)
      if (outcome === "kept") kept.push(...ids)
      if (outcome === "hangs") return Effect.never
      return outcome === "refused"
        ? Effect.die("a value that no column takes")
        : outcome === "later"
          ? Effect.fail({ _tag: "unavailable" })
          : Effect.succeed([])
    }
    if (text.includes("insert into event")) {
      const gap = JSON.parse(values.find((value) => String(value).includes('"count"')) as string)
      return Effect.as(
        Effect.tap(state.gap, () => Effect.sync(() => gaps.push(gap))),
        [],
      )
    }
    return Effect.succeed(text.includes("select sealed") ? [{ sealed: Buffer.alloc(40, 1) }] : [])
  })
  const scope = yield* Scope.make()
  const sealing = Layer.mock(Sealing)({
    sealForService: (_: string, bytes: Uint8Array) => Effect.succeed(bytes),
    openForService: (_: string, bytes: Uint8Array) => Effect.succeed(bytes),
  } as never)
  const layer = Audit.layer({ addresses: "none" }).pipe(Layer.provide([sealing, Layer.succeed(Writes, sql)]))
  const audit = Context.get(yield* Layer.buildWithScope(layer, scope), Audit)
  const record = (...ids: ReadonlyArray<string>) =>
    Effect.forEach(ids, (requestId) => audit.record(act("org", { requestId })), {
      concurrency: "unbounded",
      discard: true,
    }).pipe(Effect.provide(Logger.layer([])))
  return { state, kept, tries, gaps, audit, record, stop: Scope.close(scope, Exit.void) }
})
const ids = (count: number, from = 0) => Array.from({ length: count }, (_, n) => String(from + n))

it.effect(
  "Waiting records are tried in hundreds, and those that the store cannot take now wait on in their order",
  () =>
    Effect.gen(function* () {
      const { state, kept, tries, record } = yield* recording
      state.judge = () => "later"
      yield* record(...ids(250))
      tries.length = 0
      yield* TestClock.adjust(Timing.auditRetry)
      expect(tries.map(({ length }) => length)).toEqual([100])
      // The first hundred is stored, and the second one is not.
      let statements = 0
      state.judge = () => (++statements === 2 ? "later" : "kept")
      tries.length = 0
      yield* TestClock.adjust(Timing.auditRetry)
      expect([tries.map(({ length }) => length), kept.length]).toEqual([[100, 100], 100])
      yield* TestClock.adjust(Timing.auditRetry)
      expect(kept.toSorted()).toEqual(ids(250).toSorted())
      tries.length = 0
      yield* TestClock.adjust(Timing.auditRetry)
      expect(tries).toEqual([])
    }),
)

it.effect(
  "A record that no statement takes is dropped alone, and those behind it wait if the store fails meanwhile",
  () =>
    Effect.gen(function* () {
      const { state, kept, tries, gaps, record } = yield* recording
      state.judge = () => "later"
      yield* record(...ids(5))
      state.judge = (of) => (of.includes("2") ? "refused" : of[0] === "3" && of.length === 1 ? "later" : "kept")
      tries.length = 0
      yield* TestClock.adjust(Timing.auditRetry)
      expect(tries).toEqual([ids(5), ["0"], ["1"], ["2"], ["3"]])
      expect(kept).toEqual(["0", "1"])
      expect(gaps).toMatchObject([{ count: 1 }])
      state.judge = () => "kept"
      tries.length = 0
      yield* TestClock.adjust(Timing.auditRetry)
      expect([tries, kept, gaps.length]).toEqual([[["3", "4"]], ["0", "1", "3", "4"], 1])
    }),
)

it.effect("10,000 records wait; older ones are a gap, which is reported when the store takes it", () =>
  Effect.gen(function* () {
    const { state, kept, gaps, record } = yield* recording
    state.judge = () => "later"
    yield* record(...ids(10_000))
    yield* TestClock.adjust(500)
    expect(gaps).toEqual([])
    yield* record("more", "and more")
    // Another record is lost while the gap is reported, and the report fails.
    state.gap = Effect.andThen(record("last"), Effect.fail({ _tag: "unavailable" }))
    yield* TestClock.adjust(500)
    expect([gaps, kept]).toEqual([[], []])
    state.gap = Effect.void
    state.judge = () => "kept"
    yield* TestClock.adjust(Timing.auditRetry)
    expect([kept.length, ...["0", "1", "2", "more", "last"].map((id) => kept.includes(id))]).toEqual([
      10_000,
      false,
      false,
      true,
      true,
      true,
    ])
    expect(gaps).toEqual([{ count: 3, since: "1970-01-01T00:00:00.000Z", until: "1970-01-01T00:00:00.000Z" }])
    yield* TestClock.adjust(Timing.auditRetry)
    expect(gaps).toHaveLength(1)
  }),
)

it.effect(
  "A process stores what waits and what it summarized before it ends, and shows no secret without a record",
  () =>
    Effect.gen(function* () {
      const { state, kept, audit, record, stop } = yield* recording
      state.judge = () => "later"
      yield* record("late")
      expect(yield* Effect.flip(audit.secret(act("org")))).toMatchObject({ code: "audit_unavailable" })
      state.judge = () => "kept"
      for (const requestId of ["first", "second", "third"])
        yield* audit.record(act("org", { requestId, outcome: "refused", code: "not_found" }))
      expect(kept).toEqual(["first"])
      yield* stop
      expect(kept.toSorted()).toEqual(["first", "late", "third"].toSorted())
    }),
)

it.effect("A process that ends while it tries waiting records stores them too", () =>
  Effect.gen(function* () {
    for (const hanging of [["0", "1", "2"], ["1"]]) {
      const { state, kept, record, stop } = yield* recording
      state.judge = () => "later"
      yield* record("0", "1", "2")
      // The statement with these records gets no answer.
      state.judge = (of) => (of.join() === hanging.join() ? "hangs" : of.length > 1 ? "refused" : "kept")
      yield* TestClock.adjust(Timing.auditRetry)
      state.judge = () => "kept"
      yield* stop
      expect(kept.toSorted()).toEqual(["0", "1", "2"])
    }
  }),
)

it.effect("A process that ends while it reports a gap reports it", () =>
  Effect.gen(function* () {
    const { state, gaps, record, stop } = yield* recording
    state.judge = () => "refused"
    state.gap = Effect.never
    yield* record("0")
    yield* TestClock.adjust(Timing.auditRetry)
    state.gap = Effect.void
    yield* stop
    expect(gaps).toMatchObject([{ count: 1 }])
  }),
)

it.effect("An Org is marked for sealing immediately, and again after half of the sealing interval", () =>
  Effect.gen(function* () {
    const marks: Array<unknown> = []
    const sql = client(({ values }) => Effect.sync(() => (marks.push(values.at(-1)), [])))
    const queue = yield* SealQueue.make(sql)
    const turns = Effect.forEach(ids(10), () => Effect.yieldNow, { discard: true })
    const marked = (...orgs: ReadonlyArray<string>) =>
      Effect.suspend(() => (queue.touch(orgs), Effect.as(turns, marks.splice(0))))
    expect(yield* marked("one", "two", "one")).toEqual([["one", "two"]])
    expect(yield* marked("one", "three")).toEqual([["three"]])
    yield* TestClock.adjust(Timing.auditSealMillis / 2 - 1)
    expect(yield* marked("one")).toEqual([])
    yield* TestClock.adjust(1)
    expect(yield* marked("one")).toEqual([["one"]])
  }),
)

it.effect("Reads of 20,000 readers and operations are counted, and others after the next round", () =>
  Effect.gen(function* () {
    const stored: Array<ReadonlyArray<{ actor_id: string; count: number }>> = []
    const sql = client(({ values }) => Effect.sync(() => (stored.push(JSON.parse(values[1] as string)), [])))
    const { count } = yield* ReadCounts.make(sql)
    const read = (id: string) =>
      count({ org: "org", kind: "admin_key", id, action: "messages.read", tool: "", handle: "" })
    for (const id of ids(20_001)) read(id)
    read("0")
    yield* TestClock.adjust(Timing.auditUsage)
    expect(stored.map(({ length }) => length)).toEqual([20_000])
    expect(stored[0]!.slice(0, 2).map((row) => [row.actor_id, row.count])).toEqual([
      ["0", 2],
      ["1", 1],
    ])
    read("20000")
    yield* TestClock.adjust(Timing.auditUsage)
    yield* TestClock.adjust(Timing.auditUsage)
    expect(stored.slice(1)).toMatchObject([[{ actor_id: "20000", count: 1 }]])
  }).pipe(Effect.scoped),
)

it.effect("Counts of reads that a process was storing when it stopped are stored", () =>
  Effect.gen(function* () {
    const stored: Array<unknown> = []
    const answer = Latch.makeUnsafe()
    const sql = client(({ values }) =>
      Effect.andThen(
        answer.await,
        Effect.sync(() => (stored.push(values[1]), [])),
      ),
    )
    const scope = yield* Scope.make()
    const { count } = yield* Scope.provide(ReadCounts.make(sql), scope)
    count({ org: "org", kind: "admin_key", id: "one", action: "messages.read", tool: "", handle: "" })
    yield* TestClock.adjust(Timing.auditUsage)
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* answer.open
    yield* Fiber.join(stopped)
    expect(stored).toHaveLength(1)
  }),
)

import * as Overdue from "@svc/cluster/work/Overdue"
import * as IdentityActor from "@svc/cluster/capabilities/IdentityActor"
import * as OrgActor from "@svc/cluster/capabilities/OrgActor"
import { Reads } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { databaseLayer } from "../harness/Database.ts"

it.effect("the first scan that succeeds wakes the work of a lost process, and later scans wake overdue work only", () =>
  Effect.gen(function* () {
    /** How far in the future a row may be due to be found, in milliseconds, for each scan. */
    const scans: Array<number> = []
    const woken: Array<string> = []
    const watched = Overdue.layer({
      kind: "Test",
      sources: [
        {
          name: "saga",
          overdue: (_, late) =>
            Effect.map(Clock.currentTimeMillis, (now) => {
              scans.push(late.getTime() - now)
              if (scans.length === 1) throw new Error("the store failed")
              return ["ada"]
            }),
        },
        { name: "other", overdue: () => Effect.succeed(["ada", "bob"]) },
      ],
      wake: Effect.succeed((id) => Effect.sync(() => void woken.push(id))),
    })
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Layer.build(watched)
        while (scans.length < 4) yield* TestClock.adjust("500 millis")
      }),
    )
    const later = -Timing.overdueGraceMillis
    expect(scans.slice(0, 4)).toEqual([Timing.sagaLeaseMillis, Timing.sagaLeaseMillis, later, later])
    expect(woken.length).toBeGreaterThanOrEqual(2)
    // An actor with work of several sources is woken once.
    expect(woken.filter((id) => id === "ada").length).toBe(woken.filter((id) => id === "bob").length)
  }).pipe(Effect.provide(Layer.mergeAll(TestRunner.layer, databaseLayer))),
)

it.effect("a scan reads no more rows of a source than it asks for", () =>
  Effect.gen(function* () {
    for (const { name, overdue } of [...IdentityActor.watched.sources, ...OrgActor.watched.sources]) {
      const parameters: Array<unknown> = []
      const sql = new Proxy(yield* Reads, {
        apply: (statement, self, given: Array<unknown>) => {
          parameters.push(...given.slice(1))
          return Reflect.apply(statement, self, given)
        },
      })
      yield* overdue(sql, new Date(), 7_919)
      expect(parameters, name).toContain(7_919)
    }
  }).pipe(Effect.provide(databaseLayer)),
)

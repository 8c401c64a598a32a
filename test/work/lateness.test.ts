/** The lateness of work as reported by metrics. */
import * as Lateness from "@svc/cluster/work/Lateness"
import { Reads } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, it } from "@effect/vitest"
import { Clock, Context, Effect, Metric } from "effect"
import { TestClock } from "effect/testing"

/** Returns the series of a source by the name of the metric. */
const shown = (kind: string) =>
  Object.fromEntries(
    Metric.snapshotUnsafe(Context.empty())
      .filter(({ id, attributes }) => id.startsWith("svc_work_") && attributes?.["kind"] === kind)
      .map(({ id, state }) => [id, (state as { readonly value: number }).value]),
  )

it.effect("lateness is the largest step that is exceeded, 0 without overdue work, and reported by one process", () =>
  Effect.gen(function* () {
    /** The due time of each entity's work. */
    let due: ReadonlyArray<number> = []
    const lateness = Lateness.make("Test", [
      {
        name: "letters",
        overdue: (_, late, atMost) =>
          Effect.sync(() =>
            due
              .filter((at) => at <= late.getTime())
              .slice(0, atMost)
              .map(String),
          ),
      },
    ])
    yield* TestClock.adjust("1 day")
    const check = Effect.andThen(TestClock.adjust(Timing.latenessLookMillis), lateness.look)
    yield* lateness.look
    expect(shown("letters")).toEqual({})
    yield* check
    expect(shown("letters")).toEqual({ svc_work_overdue: 0, svc_work_oldest_seconds: 0 })

    const now = yield* Clock.currentTimeMillis
    const next = now + Timing.latenessLookMillis
    due = [next - 130_000, next - 40_000, next - 11_000, next - 9_000]
    yield* check
    expect(shown("letters")).toEqual({ svc_work_overdue: 3, svc_work_oldest_seconds: 120 })
    // The metric is not computed again between two checks.
    due = []
    yield* lateness.look
    expect(shown("letters")["svc_work_overdue"]).toBe(3)
    yield* check
    expect(shown("letters")).toEqual({ svc_work_overdue: 0, svc_work_oldest_seconds: 0 })
    lateness.leave()
    expect(shown("letters")).toEqual({})
  }).pipe(Effect.provideService(Reads, {} as Reads["Service"])),
)

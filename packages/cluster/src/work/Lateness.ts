/**
 * Metrics of overdue work by source, reported by the process that runs `Overdue`. Queries each source's `overdue` with
 * increasing ages, so that sources need no further query. Without overdue work, this is one indexed select per source.
 */
import { Clock, Effect } from "effect"
import * as Metrics from "../observe/Metrics.ts"
import * as Singletons from "../observe/Singletons.ts"
import { Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Backlog } from "./Source.ts"

const minute = 60
/** The reported ages in seconds. The metric shows the largest one that some work exceeds. */
const steps = [10, 30, minute, 2 * minute, 5 * minute, 15 * minute, 60 * minute, 6 * 60 * minute] as const

/** Largest number of entities that are counted. */
const most = 500

const overdue = Metrics.gauge(
  "svc_work_overdue",
  `Entities with work that is more than ${steps[0]} seconds overdue, up to ${most}`,
  ["kind"],
)
const oldest = Metrics.gauge(
  "svc_work_oldest_seconds",
  `Age of the most overdue work, in steps (${steps.join(", ")}); 0 without overdue work`,
  ["kind"],
)

export const make = (kind: string, sources: ReadonlyArray<Backlog>) => {
  let lookedAt: number | undefined

  const lookAt = Effect.fnUntraced(function* (source: Backlog, now: number) {
    const sql = yield* Reads
    let [count, late] = [0, 0]
    for (const step of steps) {
      const found = yield* source.overdue(sql, new Date(now - step * 1000), late === 0 ? most : 1)
      if (found.length === 0) break
      if (late === 0) count = found.length
      late = step
    }
    overdue.set([source.name], count)
    oldest.set([source.name], late)
  })

  return {
    /** Called in every scan. Updates the metrics at intervals, and first after abandoned work has had time to resume. */
    look: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      Singletons.recordRun(`Overdue/${kind}`, now)
      lookedAt ??= now
      if (now - lookedAt < Timing.latenessLookMillis) return
      lookedAt = now
      yield* Effect.forEach(sources, (source) => lookAt(source, now), { discard: true })
    }),
    /** Removes the metrics, because another process reports them now. */
    leave: (): void => {
      overdue.clear()
      oldest.clear()
    },
  }
}

/**
 * How late the work of one kind of actor is, by source, for whoever watches the cluster: the process that carries
 * `Overdue` says it. It asks each source what it would ask anyway (whose work was due before a time), for times ever
 * further back, so that a source needs no question of its own and nothing late costs one indexed select.
 */
import { Clock, Effect } from "effect"
import * as Metrics from "../observe/Metrics.ts"
import * as Singletons from "../observe/Singletons.ts"
import { Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Backlog } from "./Source.ts"

const minute = 60
/** What is told is the largest of these that something is late by. */
export const steps = [10, 30, minute, 2 * minute, 5 * minute, 15 * minute, 60 * minute, 6 * 60 * minute] as const

/** Entities counted at most. */
const most = 500

const overdue = Metrics.gauge(
  "svc_work_overdue",
  `Entities with work that is later than ${steps[0]} seconds past its time, up to ${most}`,
  ["kind"],
)
const oldest = Metrics.gauge(
  "svc_work_oldest_seconds",
  `How late the latest work is at least, in steps (${steps.join(", ")}); 0 where nothing is`,
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
    /** Called with every scan; looks now and then, first when what was left behind has had time to be done. */
    look: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      Singletons.ran(`Overdue/${kind}`, now)
      lookedAt ??= now
      if (now - lookedAt < Timing.latenessLookMillis) return
      lookedAt = now
      yield* Effect.forEach(sources, (source) => lookAt(source, now), { discard: true })
    }),
    /** Another process looks from now on. */
    leave: (): void => {
      overdue.clear()
      oldest.clear()
    },
  }
}

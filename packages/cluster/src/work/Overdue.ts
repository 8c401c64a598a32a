/**
 * Finds work whose time has passed because its actor is not in memory (it was passivated, or its process died) and
 * wakes the actor. In the normal case actors drive their own rows and this finds nothing.
 */
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { Reads } from "../store/Database.ts"
import * as Lateness from "./Lateness.ts"
import { Timing } from "../Timing.ts"
import type { Backlog } from "./Source.ts"

/** Entities woken per source and scan; the rest is found by the next one. */
const batch = 500
const atOnce = 16

/** One kind of actor: its sources, and how one of them is sent its Work. */
export interface Watched<R> {
  readonly kind: string
  readonly sources: ReadonlyArray<Backlog>
  readonly wake: Effect.Effect<(id: string) => Effect.Effect<void>, never, R>
}

/** One process of the cluster looks. */
export const layer = <R>({ kind, sources, wake }: Watched<R>) => {
  /** `grace`: how late a row is before it counts as nobody's, in milliseconds. */
  const scan = Effect.fnUntraced(function* (grace: number) {
    const sql = yield* Reads
    const late = new Date((yield* Clock.currentTimeMillis) - grace)
    const found = yield* Effect.forEach(sources, ({ overdue }) => overdue(sql, late, batch))
    yield* Effect.forEach(new Set(found.flat()), yield* wake, { concurrency: atOnce, discard: true })
  })
  return Singleton.make(
    `Overdue/${kind}`,
    Effect.suspend(() => {
      const lateness = Lateness.make(kind, sources)
      // It begins where another process left, or this one lost its shards for a moment: actors were cut off in the midst
      // of their work, which falls due within a saga's lease. They go on by themselves once they are awake.
      let grace: number = -Timing.sagaLeaseMillis
      return Effect.suspend(() => scan(grace)).pipe(
        Effect.tap(() => Effect.sync(() => (grace = Timing.overdueGraceMillis))),
        Effect.andThen(lateness.look),
        Effect.catchCause((cause) => Effect.logWarning(`The scan for overdue work of ${kind} actors failed`, cause)),
        Effect.repeat(Schedule.spaced(Timing.overdueScan)),
        Effect.ensuring(Effect.sync(lateness.leave)),
        Effect.asVoid,
      )
    }),
  )
}

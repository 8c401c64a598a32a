/**
 * Finds overdue work of actors that are not in memory (unloaded, or their process crashed) and wakes these actors. Loaded
 * actors do their own work, so a scan normally finds nothing.
 */
import { Clock, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { Reads } from "../store/Database.ts"
import * as Lateness from "./Lateness.ts"
import { Timing } from "../Timing.ts"
import type { Backlog } from "./Source.ts"

/** The maximum number of entities woken per source and scan; the next scan finds the rest. */
const batch = 500
const atOnce = 16

/** A kind of actor: its sources, and how to send an actor its Work message. */
interface Watched<R> {
  readonly kind: string
  readonly sources: ReadonlyArray<Backlog>
  readonly wake: Effect.Effect<(id: string) => Effect.Effect<void>, never, R>
}

/** Runs the scan in one process of the cluster. */
export const layer = <R>({ kind, sources, wake }: Watched<R>) => {
  /** Wakes the entities with rows that are overdue by `grace` milliseconds. */
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
      // The scan starts after another process left or this one lost its shards, so actors were interrupted. Their sagas are due
      // within the lease of a saga, so the first scan wakes them ahead of time.
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

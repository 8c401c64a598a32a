/**
 * Whether this process is to be sent work. It is from when all of it stands until it is told to end: then it says so
 * first and closes its listeners after a delay, so that a balancer has turned away before a port is closed.
 */
import { Health } from "@svc/cluster/health/Health"
import type { HealthReport } from "@svc/domain/health/HealthApi"
import { type Duration, Effect, Layer } from "effect"

/**
 * Seconds to wait in a rolling restart from the moment a process is ready until the next one is told to end: a balancer that
 * asks every second and wants two good answers has turned to it by then, and so have callers whose Identities moved to it.
 */
export const restartPauseSeconds = 5

export type State = "starting" | "ready" | "leaving"

export interface Readiness {
  readonly state: () => State
  /** What the parts of the process say of themselves; undefined until they stand. */
  readonly report: () => Effect.Effect<HealthReport> | undefined
  readonly serves: (report: Effect.Effect<HealthReport>) => void
  readonly leaves: () => void
}

export const make = (): Readiness => {
  let state: State = "starting"
  let known: Effect.Effect<HealthReport> | undefined
  return {
    state: () => state,
    report: () => known,
    serves: (report) => {
      state = "ready"
      known = report
    },
    leaves: () => {
      state = "leaving"
    },
  }
}

/** Stands on top of what serves: its end begins before the end of anything else. */
export const announced = (readiness: Readiness, delay: Duration.Input) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const health = yield* Health
      readiness.serves(health.report)
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          readiness.leaves()
          yield* Effect.logInfo("leaving")
          yield* Effect.sleep(delay)
        }),
      )
    }),
  )

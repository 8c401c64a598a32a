/**
 * The readiness of this process. The process is ready from the start of all its parts until it receives a signal to stop.
 * Readiness then fails first, and the listeners close after a delay, so that balancers redirect traffic before a port
 * closes.
 */
import { Health } from "@svc/cluster/health/Health"
import type { HealthReport } from "@svc/domain/health/HealthApi"
import { type Duration, Effect, Layer } from "effect"

/**
 * Seconds between the readiness of a restarted process and the stop of the next one in a rolling restart. The time is
 * enough for a balancer that checks every second and needs two successes, and for Identities to move to the process.
 */
export const restartPauseSeconds = 5

export type State = "starting" | "ready" | "leaving"

export interface Readiness {
  readonly state: () => State
  /** Returns the health of the process; undefined until its parts have started. */
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

/** Depends on everything that serves, so that it stops before anything else. */
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

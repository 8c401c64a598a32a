/**
 * The health checks of this process. Each part registers its check when it is created, so the report lists exactly the parts that
 * run in this process.
 */
import { apiVersion } from "@svc/domain/Version"
import type { HealthComponent, HealthReport, HealthStatus } from "@svc/domain/health/HealthApi"
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { Timing } from "../Timing.ts"

/** The result of a check. A probe that fails counts as `fail`. */
export interface Finding {
  readonly status: HealthStatus
  readonly detail: string | null
}

export const pass: Finding = { status: "pass", detail: null }

interface Check {
  readonly name: string
  /** Without an essential part the process cannot serve requests: the report responds with 503. */
  readonly essential: boolean
  readonly probe: Effect.Effect<Finding, unknown>
}

const order: Record<HealthStatus, number> = { pass: 0, warn: 1, fail: 2 }

const make = Effect.sync(() => {
  const checks = new Set<Check>()

  const judge = Effect.fnUntraced(function* (check: Check) {
    const start = yield* Clock.currentTimeNanos
    const finding = yield* check.probe.pipe(
      Effect.timeout(Timing.healthProbe),
      Effect.catchCause(() => Effect.succeed<Finding>({ status: "fail", detail: "does not answer" })),
    )
    const component: HealthComponent = {
      name: check.name,
      essential: check.essential,
      status: finding.status,
      latency_ms: Number((yield* Clock.currentTimeNanos) - start) / 1e6,
      detail: finding.detail,
    }
    return component
  })

  return {
    /** Adds a check for as long as the scope lasts. */
    register: (check: Check): Effect.Effect<void, never, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.sync(() => void checks.add(check)),
        () => Effect.sync(() => void checks.delete(check)),
      ),
    report: Effect.map(
      Effect.suspend(() => Effect.forEach(checks, judge, { concurrency: "unbounded" })),
      (components): HealthReport => ({ status: worst(components), version: apiVersion, components }),
    ),
  }
})

/** Returns the worst status. A part that is not essential counts as `warn` at most. */
const worst = (components: ReadonlyArray<HealthComponent>): HealthStatus =>
  components.reduce<HealthStatus>((sum, { status, essential }) => {
    const weight = status === "fail" && !essential ? "warn" : status
    return order[weight] > order[sum] ? weight : sum
  }, "pass")

export class Health extends Context.Service<Health, Effect.Success<typeof make>>()("@svc/cluster/health/Health") {
  static readonly layer = Layer.effect(Health, make)
}

/** Registers one check for the lifetime of a layer. */
export const check = <R>(
  name: string,
  essential: boolean,
  probe: Effect.Effect<Finding, unknown, R>,
): Layer.Layer<never, never, Health | R> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const health = yield* Health
      const context = yield* Effect.context<R>()
      yield* health.register({ name, essential, probe: Effect.provideContext(probe, context) })
    }),
  )

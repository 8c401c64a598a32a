/**
 * Collectors that set gauges at each scrape, for values that need a statement or a system call. A collector that fails or
 * times out leaves the previous values.
 */
import { Effect, Layer } from "effect"
import { Timing } from "../Timing.ts"

const collectors = new Set<Effect.Effect<void>>()

/** Registers a collector for the lifetime of a layer. */
export const collect = <R>(effect: Effect.Effect<void, unknown, R>): Layer.Layer<never, never, R> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const context = yield* Effect.context<R>()
      const bounded: Effect.Effect<void> = effect.pipe(
        Effect.provideContext(context),
        Effect.timeout(Timing.healthProbe),
        Effect.catchCause((cause) => Effect.logDebug("A collector failed", cause)),
      )
      yield* Effect.acquireRelease(
        Effect.sync(() => void collectors.add(bounded)),
        () => Effect.sync(() => void collectors.delete(bounded)),
      )
    }),
  )

export const runAll: Effect.Effect<void> = Effect.suspend(() =>
  Effect.forEach(collectors, (collector) => collector, { concurrency: "unbounded", discard: true }),
)

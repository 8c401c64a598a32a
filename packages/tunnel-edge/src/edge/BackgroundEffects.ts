/** Runs effects from socket callbacks. The fibers are interrupted when the edge stops. */
import { Effect, FiberSet } from "effect"

export interface BackgroundEffects {
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  /** Runs an effect without waiting for it. Interruption by the end of the edge is ignored. */
  readonly launch: (effect: Effect.Effect<void>) => void
}

export const make = Effect.map(FiberSet.makeRuntimePromise<never>(), (run): BackgroundEffects => ({
  run,
  launch: (effect) => void run(effect).catch(() => {}),
}))

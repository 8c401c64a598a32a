/** Effects that callbacks of sockets start. They end with the edge. */
import { Effect, FiberSet } from "effect"

export interface BackgroundEffects {
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  /** What nobody waits for; that it was cut off by the end of the edge is no error. */
  readonly launch: (effect: Effect.Effect<void>) => void
}

export const make = Effect.map(FiberSet.makeRuntimePromise<never>(), (run): BackgroundEffects => ({
  run,
  launch: (effect) => void run(effect).catch(() => {}),
}))

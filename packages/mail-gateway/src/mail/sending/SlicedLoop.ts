/** Runs long work on the main thread in slices, so that nothing else waits for longer than a slice. */
import { Effect } from "effect"

/** How long slices may run before the event loop continues. */
const turnMillis = 5

/** Runs a generator to its end. The event loop continues between its yields. */
export const inTurns = <A>(make: () => Generator<void, A, void>): Effect.Effect<A> =>
  Effect.callback((resume) => {
    const work = make()
    let waiting: NodeJS.Immediate | undefined
    const turn = () => {
      const until = performance.now() + turnMillis
      try {
        for (let step = work.next(); ; step = work.next()) {
          if (step.done === true) return resume(Effect.succeed(step.value))
          if (performance.now() >= until) break
        }
      } catch (error) {
        return resume(Effect.die(error))
      }
      waiting = setImmediate(turn)
    }
    turn()
    return Effect.sync(() => clearImmediate(waiting))
  })

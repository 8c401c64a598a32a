/** Long work on the process's own thread, cut into slices, so that nothing else waits longer than for one of them. */
import { Effect } from "effect"

/** How long slices may follow one another before everybody else has a turn. */
const turnMillis = 5

/** Runs a generator to its end; between its yields others get their turn. */
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

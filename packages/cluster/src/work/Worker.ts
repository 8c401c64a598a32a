/**
 * Drives an actor's sources: does what is due, sleeps until something else is, and ends when nothing is due soon. Rows
 * that fall due later are found by `Overdue`.
 */
import { Cause, Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import type { Moved } from "@svc/domain/actor/Moved"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { orUnavailable } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Running } from "./Source.ts"

export interface Worker {
  /** Something may be due: the running worker looks again, or one is started. */
  readonly wake: Effect.Effect<void>
  /** Works until nothing is due soon. A second call while one runs only wakes that one. */
  readonly run: Effect.Effect<void, Moved | Unavailable>
}

export const make = Effect.fnUntraced(function* <State>(parts: {
  /** The entity; undefined while there is none, when nothing is due. */
  readonly state: Effect.Effect<State | undefined, Moved | Unavailable>
  readonly sources: ReadonlyArray<Running<State>>
  /** Sends the actor its own Work message, inside which the work runs: so it stays in memory and is drained. */
  readonly start: Effect.Effect<void, unknown>
}) {
  const { sources } = parts
  const changed = yield* Latch.make()
  const scope = yield* Effect.scope
  let running = false
  /** Something may be due since the turn at hand began; a turn that saw nothing must not end the work then. */
  let asked = false
  const look = Effect.suspend(() => {
    asked = true
    return changed.open
  })
  const isBusy = () => sources.some((source) => source.isBusy())

  /** Does what is due now; answers how long nothing else will be, in milliseconds. */
  const turn: Effect.Effect<number, Moved | Unavailable | SqlError.SqlError> = Effect.gen(function* () {
    const state = yield* parts.state
    if (state === undefined) return Infinity
    let wait = Infinity
    for (const source of sources) {
      if (yield* source.dispatch(state, look)) {
        // What was done at once may have made another state; what was started wakes us when it ends.
        if (!source.isBusy()) return 0
        wait = Math.min(wait, Timing.busyLookMillis)
        continue
      }
      const due = yield* source.nextDue(state)
      if (due === null) continue
      const left = due.getTime() - (yield* Clock.currentTimeMillis)
      // Due, though nothing was begun: its place is taken and will wake us, or what holds it back is not ours to see.
      wait = Math.min(wait, left > 0 ? left : source.isBusy() ? Timing.residentWaitMillis : Timing.busyLookMillis)
    }
    return wait
  })

  const loop: Effect.Effect<void, Moved | Unavailable> = Effect.gen(function* () {
    while (true) {
      asked = false
      changed.closeUnsafe()
      const wait = yield* orUnavailable(turn)
      if (wait === 0 || asked) continue
      if (!isBusy() && wait > Timing.residentWaitMillis) return
      yield* Effect.raceFirst(changed.await, Effect.sleep(Math.min(wait, Timing.residentWaitMillis)))
    }
  })

  const run: Worker["run"] = Effect.suspend(() => {
    if (running) return look
    running = true
    return loop.pipe(
      // Nobody waits for this answer; the rows are still due, so `Overdue` sends the work again.
      Effect.tapCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning("An actor's work was cut short", cause),
      ),
      Effect.onInterrupt(() => Effect.forEach(sources, (source) => source.settle, { concurrency: "unbounded" })),
      Effect.ensuring(Effect.sync(() => (running = false))),
    )
  }).pipe(Effect.asVoid)

  const wake: Worker["wake"] = Effect.suspend(() =>
    running ? Effect.asVoid(look) : Effect.asVoid(Effect.forkIn(Effect.ignore(parts.start), scope)),
  )

  return { wake, run } satisfies Worker
})

/**
 * Drives an actor's sources: does what is due, sleeps until something else is, and ends when nothing is due soon. Rows
 * that fall due later are found by `Overdue`.
 */
import { Cause, Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import type { Moved } from "@svc/domain/actor/Moved"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { orUnavailable } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Running } from "./Source.ts"

/** When a source is to be looked at of which nothing is known, and one of which something has ended. */
const anyTime = 0
const atOnce = -1

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
  /** When each source is to be looked at next (ms since 1970); what it said holds until then, for the state it was said of. */
  const nextLook = sources.map(() => anyTime)
  let known: State | undefined
  /** When all are, whatever they said; by a clock that nobody sets. */
  let fullLook = 0
  const look = Effect.suspend(() => {
    asked = true
    nextLook.fill(anyTime)
    return changed.open
  })
  const looks = sources.map((_, index) =>
    Effect.suspend(() => {
      asked = true
      nextLook[index] = atOnce
      return changed.open
    }),
  )
  const isBusy = () => sources.some((source) => source.isBusy())

  /** Does or starts what is due of a source; answers when to look at it next, 0 where something was done at once. */
  const advance = Effect.fnUntraced(function* (
    source: Running<State>,
    index: number,
    state: State,
    isUnknown: boolean,
  ) {
    if (isUnknown && source.isSeldomDue === true) {
      const due = yield* source.nextDue(state)
      if (due === null) return Infinity
      if (due.getTime() > (yield* Clock.currentTimeMillis)) return due.getTime()
    }
    const begun = yield* source.dispatch(state, look, looks[index]!)
    if (begun && !source.isBusy()) return 0
    const due = begun ? null : yield* source.nextDue(state)
    if (!begun && due === null) return Infinity
    const now = yield* Clock.currentTimeMillis
    // What was started wakes us when it ends.
    if (due === null) return now + Timing.busyLookMillis
    if (due.getTime() > now) return due.getTime()
    // Due, though nothing was begun: its place is taken and will wake us, or what holds it back is not ours to see.
    return now + (source.isBusy() ? Timing.residentWaitMillis : Timing.busyLookMillis)
  })

  /** Does what is due now; answers how long nothing else will be, in milliseconds. */
  const turn: Effect.Effect<number, Moved | Unavailable | SqlError.SqlError> = Effect.gen(function* () {
    const state = yield* parts.state
    if (state === undefined) return Infinity
    const began = yield* Clock.currentTimeMillis
    const lasting = yield* monotonicMillis
    if (state !== known || lasting >= fullLook) {
      nextLook.fill(anyTime)
      known = state
      fullLook = lasting + Timing.residentWaitMillis
    }
    for (const [index, source] of sources.entries()) {
      const next = nextLook[index]!
      if (next > began) continue
      // Whoever asks for a look while this one goes on gets another.
      nextLook[index] = Infinity
      const at = yield* advance(source, index, state, next === anyTime)
      if (at === 0) {
        // It may have made another state.
        nextLook.fill(anyTime)
        return 0
      }
      nextLook[index] = Math.min(nextLook[index]!, at)
    }
    return Math.max(0, Math.min(...nextLook) - (yield* Clock.currentTimeMillis))
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
    nextLook.fill(anyTime)
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

/**
 * Drives the work sources of an actor: does due work, sleeps until more is due, and ends when nothing is due soon. `Overdue`
 * finds rows that become due later.
 */
import { Cause, Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import type { Moved } from "@svc/domain/actor/Protocol"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { orUnavailable } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { Running } from "./Source.ts"

/** Values of `nextLook`: the source has not been checked, and some of its work has ended. */
const anyTime = 0
const immediately = -1

interface Worker {
  /** Work may be due: the running worker checks again, or a worker is started. */
  readonly wake: Effect.Effect<void>
  /** Work of one source is due: checks only this source, unless the others were not checked for a while. */
  readonly wakeFor: (source: string) => Effect.Effect<void>
  /** Works until nothing is due soon. A concurrent call only wakes the running worker. */
  readonly run: Effect.Effect<void, Moved | Unavailable>
}

export const make = Effect.fnUntraced(function* <State>(parts: {
  /** The state of the entity; undefined if it does not exist, then nothing is due. */
  readonly state: Effect.Effect<State | undefined, Moved | Unavailable>
  readonly sources: ReadonlyArray<Running<State>>
  /** The names of the sources, in order, by which `wakeFor` finds them. */
  readonly names?: ReadonlyArray<string>
  /** Sends the actor its own Work message. The work runs inside the message, so that the actor stays loaded and is drained. */
  readonly start: Effect.Effect<void, unknown>
}) {
  const { names = [], sources } = parts
  const changed = yield* Latch.make()
  const scope = yield* Effect.scope
  let running = false
  /** Whether the next run was requested here, and so knows which sources to check. */
  let isOwnRun = false
  /** Whether work may have become due since the current turn started; then a turn without work must not end the loop. */
  let requested = false
  /** When each source is checked next (ms since 1970), valid for the state in `known`. */
  const nextLook = sources.map(() => anyTime)
  let known: State | undefined
  /** When all sources are checked in any case, by the monotonic clock. */
  let fullLook = 0
  const look = Effect.suspend(() => {
    requested = true
    nextLook.fill(anyTime)
    return changed.open
  })
  const looks = sources.map((_, index) =>
    Effect.suspend(() => {
      requested = true
      nextLook[index] = immediately
      return changed.open
    }),
  )
  const isBusy = () => sources.some((source) => source.isBusy())

  /** Does or starts the due work of a source. Returns when to check it next, or 0 if work was completed. */
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
    const dispatched = yield* source.dispatch(state, look, looks[index]!)
    if (dispatched && !source.isBusy()) return 0
    const due = dispatched ? null : yield* source.nextDue(state)
    if (!dispatched && due === null) return Infinity
    const now = yield* Clock.currentTimeMillis
    // Started work wakes the worker when it ends.
    if (due === null) return now + Timing.busyLookMillis
    if (due.getTime() > now) return due.getTime()
    // Due but not started: a limit of the source is reached, whose end wakes the worker, or the reason is unknown.
    return now + (source.isBusy() ? Timing.residentWaitMillis : Timing.busyLookMillis)
  })

  /** Does the work that is due now. Returns the milliseconds until more is due. */
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
      // A request to check this source during the check causes another check.
      nextLook[index] = Infinity
      const at = yield* advance(source, index, state, next === anyTime)
      if (at === 0) {
        // The work may have changed the state.
        nextLook.fill(anyTime)
        return 0
      }
      nextLook[index] = Math.min(nextLook[index]!, at)
    }
    return Math.max(0, Math.min(...nextLook) - (yield* Clock.currentTimeMillis))
  })

  const loop: Effect.Effect<void, Moved | Unavailable> = Effect.gen(function* () {
    while (true) {
      requested = false
      changed.closeUnsafe()
      const wait = yield* orUnavailable(turn)
      if (wait === 0 || requested) continue
      if (!isBusy() && wait > Timing.residentWaitMillis) {
        // No other fiber runs between the check and this line, so a later wake starts a new run.
        running = false
        return
      }
      yield* Effect.raceFirst(changed.await, Effect.sleep(Math.min(wait, Timing.residentWaitMillis)))
    }
  })

  const run: Worker["run"] = Effect.suspend(() => {
    if (running) return look
    running = true
    if (!isOwnRun) nextLook.fill(anyTime)
    isOwnRun = false
    return loop.pipe(
      // No caller waits for the result. The rows stay due, so `Overdue` wakes the actor again.
      Effect.tapCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning("The work of an actor was interrupted", cause),
      ),
      Effect.onInterrupt(() => Effect.forEach(sources, (source) => source.settle, { concurrency: "unbounded" })),
      Effect.onError(() =>
        Effect.sync(() => {
          // A check that failed has to be repeated.
          nextLook.fill(anyTime)
          running = false
        }),
      ),
    )
  }).pipe(Effect.asVoid)

  const started = Effect.suspend(() => {
    if (running) return Effect.void
    isOwnRun = true
    return Effect.asVoid(Effect.forkIn(Effect.ignore(parts.start), scope))
  })
  const wake: Worker["wake"] = Effect.andThen(look, started)
  const wakeFor: Worker["wakeFor"] = (source) => {
    const own = looks[names.indexOf(source)]
    return own === undefined ? wake : Effect.andThen(own, started)
  }

  return { wake, wakeFor, run } satisfies Worker
})

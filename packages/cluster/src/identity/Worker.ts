/**
 * What an actor does between messages: the next saga step, the deliveries that are due. It runs while something is
 * due soon and ends when nothing is; rows that fall due later are found by `Overdue`.
 */
import { Cause, Clock, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql"
import type { Moved } from "@svc/domain/actor/Moved"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { orUnavailable } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { DeliveryQueue } from "../webhooks/DeliveryQueue.ts"
import type { Activation, Ownership } from "./Ownership.ts"
import { currentStep } from "./Saga.ts"
import type { SagaRunner } from "./SagaRunner.ts"

export interface Worker {
  /** Something may be due: the running worker looks again, or one is started. */
  readonly wake: Effect.Effect<void>
  /** Works until nothing is due soon. A second call while one runs only wakes that one. */
  readonly run: Effect.Effect<void, Moved | Unavailable>
}

export const make = Effect.fnUntraced(function* (parts: {
  readonly ownership: Ownership
  readonly sagas: SagaRunner
  readonly deliveries: DeliveryQueue
  /** Sends the actor its own Work message. */
  readonly start: Effect.Effect<void, unknown>
}) {
  const { ownership, sagas, deliveries } = parts
  const changed = yield* Latch.make()
  const scope = yield* Effect.scope
  let running = false

  /** Does what is due now; answers how long nothing else will be, in milliseconds. */
  const turn: Effect.Effect<number, Moved | Unavailable | SqlError.SqlError> = Effect.gen(function* () {
    const { identity } = yield* ownership.state
    if (identity === undefined) return Infinity
    const step = currentStep(identity.saga)
    if (step !== undefined) {
      const wait = sagaWait(identity, yield* Clock.currentTimeMillis)
      if (wait <= 0) {
        yield* sagas.advance(ownership, identity, step)
        return 0
      }
      yield* deliveries.dispatch(identity, changed.open)
      return wait
    }
    // The end of an attempt wakes us; until one ends, another Webhook's retry may fall due.
    if ((yield* deliveries.dispatch(identity, changed.open)) > 0) return Timing.busyLookMillis
    const due = yield* deliveries.nextDue(identity)
    return due === null ? Infinity : Math.max(0, due.getTime() - (yield* Clock.currentTimeMillis))
  })

  const loop: Effect.Effect<void, Moved | Unavailable> = Effect.gen(function* () {
    while (true) {
      changed.closeUnsafe()
      const wait = yield* orUnavailable(turn)
      if (wait === 0 && !deliveries.isBusy()) continue
      if (!deliveries.isBusy() && wait > Timing.residentWaitMillis) return
      // Due at once but no place is free: the end of an attempt wakes us.
      const pause = wait === 0 ? Timing.residentWaitMillis : Math.min(wait, Timing.residentWaitMillis)
      yield* Effect.raceFirst(changed.await, Effect.sleep(pause))
    }
  })

  const run: Worker["run"] = Effect.suspend(() => {
    if (running) return changed.open
    running = true
    return loop.pipe(
      // Nobody waits for this answer; the rows are still due, so `Overdue` sends the work again.
      Effect.tapCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning("The Identity's work was cut short", cause),
      ),
      // When the shard or the process leaves, attempts under way get a moment to be recorded as what they were.
      Effect.onInterrupt(() => deliveries.settle),
      Effect.ensuring(Effect.sync(() => (running = false))),
    )
  }).pipe(Effect.asVoid)

  const wake: Worker["wake"] = Effect.suspend(() =>
    running ? Effect.asVoid(changed.open) : Effect.asVoid(Effect.forkIn(Effect.ignore(parts.start), scope)),
  )

  return { wake, run } satisfies Worker
})

/** How long the current step still has to wait after a failed try. A running one is always due. */
const sagaWait = (identity: NonNullable<Activation["identity"]>, nowMillis: number) => {
  const retrying = identity.saga.steps.some((step) => step.status === "retrying")
  return retrying && identity.sagaDueAt !== null ? identity.sagaDueAt.getTime() - nowMillis : 0
}

/**
 * A clock with the time of the store, for all processes of a deployment. Leases, due times and expiries are written by
 * one process and compared by another, so a process whose clock is wrong, or is set while it runs, must not change them.
 *
 * The time is the store's time at the last measurement plus the monotonic time since then. The clock of the process
 * is used only until the first measurement succeeds. Monotonic time does not pass while a virtual machine is suspended,
 * so after that the time is wrong until the next measurement.
 */
import { Clock, Effect, Layer, Schedule } from "effect"
import { Timing } from "../Timing.ts"
import { Reads } from "./Database.ts"

/** The difference to the store's time that is not corrected, in milliseconds. Corrections of less would be noise. */
const toleratedMillis = 100

const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const reads = yield* Reads
  const elapsed = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  /** The difference from the monotonic time to the time of day, in milliseconds. */
  let offset = clock.currentTimeMillisUnsafe() - elapsed()

  const measure = Effect.gen(function* () {
    const before = elapsed()
    const [row] = yield* reads<{
      millis: number
    }>`select extract(epoch from clock_timestamp())::float8 * 1000 as millis`
    const uncertain = (elapsed() - before) / 2
    const measured = row!.millis - before - uncertain
    const behind = Math.round(measured - offset)
    if (Math.abs(behind) <= toleratedMillis + uncertain) return
    offset = measured
    yield* Effect.logInfo(
      `The clock of this process differs from the store's by ${-behind} ms. The store's time is used.`,
    )
  }).pipe(Effect.ignore)
  yield* Effect.timeoutOption(measure, Timing.ask)
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(measure, Timing.storeClock), Schedule.forever))

  const millis = () => Math.floor(elapsed() + offset)
  const nanos = () => clock.monotonicTimeNanosUnsafe() + BigInt(Math.round(offset * 1e6))
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration),
  } satisfies Clock.Clock
})

export const layer: Layer.Layer<never, never, Reads> = Layer.effect(Clock.Clock, make)

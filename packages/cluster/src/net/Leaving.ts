/**
 * Permission for a request to leave. It has a deadline, since a stop waits for it and the process may be frozen: so it is
 * prolonged while the request waits for its connection, and looked at once more in the turn in which the request is written.
 */
import { Effect } from "effect"
import { Timing } from "../Timing.ts"
import { Withdrawn } from "./BufferedResponse.ts"

export interface Leaving<E> {
  /** Asks for it, or prolongs it; fails where nothing may leave. */
  readonly ask: Effect.Effect<void, E>
  /** Whether it still holds; looked at in the turn in which the request is written. */
  readonly isPermitted: () => boolean
}

/** Of what no stop concerns. */
export const freely: Leaving<never> = { ask: Effect.void, isPermitted: () => true }

/** Runs an exchange once more where its process was frozen, or busy, for so long that the permission had expired. */
export const whilePermitted = <A, E, E2>(
  { ask, isPermitted }: Leaving<E>,
  exchange: (isPermitted: () => boolean) => Effect.Effect<A, Error>,
  failed: (error: Error) => Effect.Effect<never, E2>,
  isLast = false,
): Effect.Effect<A, E | E2> =>
  Effect.suspend(() => {
    let isWritten = false
    const begins = () => (isWritten = isPermitted())
    const prolonged: Effect.Effect<never, E> = Effect.sleep(Timing.permitMillis / 2).pipe(
      Effect.andThen(Effect.suspend(() => (isWritten ? Effect.never : ask))),
      Effect.forever,
    )
    const exchanged: Effect.Effect<A, E | E2> = Effect.catch(exchange(begins), (error) =>
      error instanceof Withdrawn && !isLast
        ? whilePermitted({ ask, isPermitted }, exchange, failed, true)
        : failed(error),
    )
    return Effect.andThen(ask, Effect.raceFirst(exchanged, prolonged))
  })

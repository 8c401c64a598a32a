/**
 * The permission to send a request. It has a deadline, because a stop waits for it and the process may be suspended.
 * {@link whilePermitted} renews it while the request waits for its connection, and checks it again in the turn in which
 * the request is written.
 */
import { Effect } from "effect"
import { Timing } from "../Timing.ts"
import { Withdrawn } from "./BufferedResponse.ts"

export interface SendPermission<E> {
  /** Requests or renews the permission. Fails if sending is not allowed. */
  readonly request: Effect.Effect<void, E>
  /** Returns whether the permission is still valid. Called in the turn in which the request is written. */
  readonly isPermitted: () => boolean
}

/** The permission of requests that no stop affects. */
export const unrestricted: SendPermission<never> = { request: Effect.void, isPermitted: () => true }

/** Runs an exchange with a permission. Retries once if the permission expired, for example because the process was suspended. */
export const whilePermitted = <A, E, E2>(
  { request, isPermitted }: SendPermission<E>,
  exchange: (isPermitted: () => boolean) => Effect.Effect<A, Error>,
  failed: (error: Error) => Effect.Effect<never, E2>,
  isLast = false,
): Effect.Effect<A, E | E2> =>
  Effect.suspend(() => {
    let isWritten = false
    const onWrite = () => (isWritten = isPermitted())
    const renewed: Effect.Effect<never, E> = Effect.sleep(Timing.permitMillis / 2).pipe(
      Effect.andThen(Effect.suspend(() => (isWritten ? Effect.never : request))),
      Effect.forever,
    )
    const exchanged: Effect.Effect<A, E | E2> = Effect.catch(exchange(onWrite), (error) =>
      error instanceof Withdrawn && !isLast
        ? whilePermitted({ request, isPermitted }, exchange, failed, true)
        : failed(error),
    )
    return Effect.andThen(request, Effect.raceFirst(exchanged, renewed))
  })

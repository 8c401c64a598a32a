/** A message to transmit, with the permit under which DATA and content are written. */
import { Effect } from "effect"

export interface Letter {
  readonly from: string
  readonly recipients: ReadonlyArray<string>
  /** The envelope id of delivery reports (RFC 3461). */
  readonly id: string
  readonly content: ReadonlyArray<Uint8Array>
  /** See `Transmission`. */
  readonly mayLeave: Effect.Effect<boolean>
  readonly isPermitted: () => boolean
}

/**
 * Requests a permit, and writes in the turn in which it was checked. Returns undefined if it was denied or has expired.
 */
export const writeWithPermit = <A, E>(
  { isPermitted, mayLeave }: Letter,
  write: () => Effect.Effect<A, E>,
): Effect.Effect<A | undefined, E> =>
  Effect.flatMap(mayLeave, (may) => (may && isPermitted() ? write() : Effect.succeed(undefined)))

/** Writes while the permit is valid, and requests a new one after it has expired. */
export const writeWhilePermitted = <A, E>(
  letter: Letter,
  write: () => Effect.Effect<A, E>,
): Effect.Effect<A | undefined, E> =>
  Effect.suspend(() => (letter.isPermitted() ? write() : writeWithPermit(letter, write)))

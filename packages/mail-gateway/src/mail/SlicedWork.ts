/**
 * Runs long work in slices, above all copies and hashes of whole messages, because a large message would block the
 * event loop for too long.
 */
import { createHash } from "node:crypto"
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

/** The bytes processed between two checks of the clock. */
const sliceBytes = 256 * 1024

const lengthOf = (pieces: ReadonlyArray<Uint8Array>) => pieces.reduce((sum, { length }) => sum + length, 0)

const copy = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(lengthOf(pieces))
  let end = 0
  for (const piece of pieces) {
    whole.set(piece, end)
    end += piece.length
  }
  return whole
}

function* copying(pieces: ReadonlyArray<Uint8Array>): Generator<void, Uint8Array, void> {
  const whole = new Uint8Array(lengthOf(pieces))
  let end = 0
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += sliceBytes) {
      whole.set(piece.subarray(at, at + sliceBytes), end + at)
      yield
    }
    end += piece.length
  }
  return whole
}

function* hashing(bytes: Uint8Array): Generator<void, Uint8Array, void> {
  const hash = createHash("sha256")
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    hash.update(bytes.subarray(at, at + sliceBytes))
    yield
  }
  return new Uint8Array(hash.digest())
}

/** Joins the pieces in a new buffer. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Effect.Effect<Uint8Array> =>
  // Small messages are copied in one step: yielding would cost more than the copy.
  lengthOf(pieces) <= sliceBytes ? Effect.sync(() => copy(pieces)) : inTurns(() => copying(pieces))

export const sha256 = (bytes: Uint8Array): Effect.Effect<Uint8Array> => inTurns(() => hashing(bytes))

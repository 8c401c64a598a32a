/** What is done with all bytes of a message, a slice at a time: a large one takes longer than the event loop may be held for. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { inTurns } from "./sending/SlicedLoop.ts"

/** Bytes between two looks at the time. */
const slice = 256 * 1024

const lengthOf = (pieces: ReadonlyArray<Uint8Array>) => pieces.reduce((sum, { length }) => sum + length, 0)

const atOnce = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(lengthOf(pieces))
  let end = 0
  for (const piece of pieces) {
    whole.set(piece, end)
    end += piece.length
  }
  return whole
}

function* copied(pieces: ReadonlyArray<Uint8Array>): Generator<void, Uint8Array, void> {
  const whole = new Uint8Array(lengthOf(pieces))
  let end = 0
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += slice) {
      whole.set(piece.subarray(at, at + slice), end + at)
      yield
    }
    end += piece.length
  }
  return whole
}

function* digest(bytes: Uint8Array): Generator<void, Uint8Array, void> {
  const hash = createHash("sha256")
  for (let at = 0; at < bytes.length; at += slice) {
    hash.update(bytes.subarray(at, at + slice))
    yield
  }
  return new Uint8Array(hash.digest())
}

/** The pieces as one, in a buffer of its own. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Effect.Effect<Uint8Array> =>
  // What is small is copied at once: taking turns costs more than that.
  lengthOf(pieces) <= slice ? Effect.sync(() => atOnce(pieces)) : inTurns(() => copied(pieces))

export const sha256 = (bytes: Uint8Array): Effect.Effect<Uint8Array> => inTurns(() => digest(bytes))

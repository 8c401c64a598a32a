/** What is done with all bytes of a message, a slice at a time: a large one takes longer than the event loop may be held for. */
import { createHash } from "node:crypto"
import type { Effect } from "effect"
import { inTurns } from "./sending/Turns.ts"

/** Bytes between two looks at the time. */
const slice = 256 * 1024

function* copied(pieces: ReadonlyArray<Uint8Array>): Generator<void, Uint8Array, void> {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
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

/** The pieces as one. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Effect.Effect<Uint8Array> => inTurns(() => copied(pieces))

export const sha256 = (bytes: Uint8Array): Effect.Effect<Uint8Array> => inTurns(() => digest(bytes))

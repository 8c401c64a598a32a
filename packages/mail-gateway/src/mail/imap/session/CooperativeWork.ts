/**
 * Work on many messages (ordering fifty thousand takes half a second) a piece at a time: it is a generator that says by a
 * `yield` where others may go on. Of large work there is one at a time in a process, so that a turn of the event loop
 * has one piece of it, however many sessions ask.
 */
import { Effect, Semaphore } from "effect"

/** What a piece may take, past the one step that goes over it. */
const pieceMillis = 4

/** Messages with which work is large. */
const many = 1_000

/** Messages to look at between two words of a generator: the worst subject costs 0.2 ms. */
export const step = 100

export type CooperativeWork<A> = Generator<void, A>

const large = Semaphore.makeUnsafe(1)

/** Does the work, and lets others go on where it says so. */
export const done = <A>(work: () => CooperativeWork<A>): Effect.Effect<A> =>
  Effect.gen(function* () {
    const pieces = work()
    while (true) {
      const until = performance.now() + pieceMillis
      do {
        const piece = pieces.next()
        if (piece.done === true) return piece.value
      } while (performance.now() < until)
      yield* Effect.yieldNow
    }
  })

/** Work on so many messages, with what is read for it; within it there is no other of its kind. */
export const alone = <A, E, R>(messages: number, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  messages < many ? work : large.withPermits(1)(work)

/** `of` each of them, in a new list. */
export function* each<A, B>(all: Iterable<A>, of: (one: A) => B): CooperativeWork<Array<B>> {
  const out: Array<B> = []
  for (const one of all) {
    if (out.push(of(one)) % step === 0) yield
  }
  return out
}

/** In order, in a new list; what is equal stays as it stood. Parts are put in order, and then merged two by two. */
export function* sorted<A>(all: ReadonlyArray<A>, compare: (a: A, b: A) => number): CooperativeWork<Array<A>> {
  if (all.length <= step) return all.toSorted(compare)
  let from: Array<A> = []
  for (let at = 0; at < all.length; at += step) {
    for (const one of all.slice(at, at + step).sort(compare)) from.push(one)
    yield
  }
  for (let width = step; width < from.length; width *= 2) {
    const to: Array<A> = []
    for (let start = 0; start < from.length; start += 2 * width) {
      const middle = Math.min(start + width, from.length)
      const end = Math.min(middle + width, from.length)
      let [left, right] = [start, middle]
      while (left < middle || right < end) {
        const isLeft = right >= end || (left < middle && compare(from[left]!, from[right]!) <= 0)
        if (to.push(from[isLeft ? left++ : right++]!) % step === 0) yield
      }
    }
    from = to
  }
  return from
}

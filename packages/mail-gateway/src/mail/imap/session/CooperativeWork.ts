/**
 * Runs long computations over many messages in slices (sorting 50,000 takes half a second). The work is a generator
 * that yields where other fibers may run. Only one large computation runs per process, so that a turn of the event loop
 * has at most one slice of it.
 */
import { Effect, Semaphore } from "effect"

/** Duration of a slice; the last step may exceed it. */
const pieceMillis = 4

/** Number of messages from which work counts as large. */
const many = 1_000

/** Messages between two yields: the slowest subject takes 0.2 ms. */
export const step = 100

export type CooperativeWork<A> = Generator<void, A>

const large = Semaphore.makeUnsafe(1)

/** Runs the work and yields to other fibers between slices. */
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

/** Runs work on this many messages, including its queries; large work excludes other large work. */
export const exclusive = <A, E, R>(messages: number, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  messages < many ? work : large.withPermits(1)(work)

/** Maps each element into a new array. */
export function* each<A, B>(all: Iterable<A>, of: (one: A) => B): CooperativeWork<Array<B>> {
  const out: Array<B> = []
  for (const one of all) {
    if (out.push(of(one)) % step === 0) yield
  }
  return out
}

/** Sorts stably into a new array. Parts are sorted and then merged in pairs. */
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

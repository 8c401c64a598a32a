/**
 * Sessions take turns on the event loop. One answer of the store can wake many of them, and each would go on with its next
 * commands at once, all within one turn of the loop, while everybody else waits. So a session that has said something
 * goes on only while the sessions together have not used up what they may of this turn; others go on in the next, in
 * the order they came.
 */
import { Effect } from "effect"

/** What sessions may use of one turn, past the piece of work that goes over it. */
const turnMillis = 5

export const make = () => {
  const waiting = new Set<() => void>()
  /** When the first of this turn came. */
  let since: number | undefined
  const isOver = () => since !== undefined && performance.now() - since >= turnMillis

  const next = () => {
    since = waiting.size === 0 ? undefined : performance.now()
    for (const go of waiting) {
      waiting.delete(go)
      go()
      if (isOver()) break
    }
    // What was used of this turn is forgotten with it.
    if (since !== undefined) setImmediate(next)
  }

  /** Marks that work begins, unless it has begun. */
  const begin = () => {
    if (since !== undefined) return
    since = performance.now()
    setImmediate(next)
  }

  const wait = Effect.callback<void>((resume) => {
    const go = () => resume(Effect.void)
    waiting.add(go)
    return Effect.sync(() => waiting.delete(go))
  })

  return {
    begin,
    /** Resolves at once where there is still time in this turn. */
    take: Effect.suspend(() => {
      begin()
      return waiting.size > 0 || isOver() ? wait : Effect.void
    }),
  }
}

export type SessionTurns = ReturnType<typeof make>

/**
 * Shares the event loop between sessions. One database response can wake many sessions, which would all run their next
 * commands within the same turn and block everything else. A session with new output only continues while all sessions
 * together have time left in this turn; the others continue in the next turns, in order of arrival.
 */
import { Effect } from "effect"

/** Time that sessions may use of one turn; the last step may exceed it. */
const turnMillis = 5

export const make = () => {
  const waiting = new Set<() => void>()
  /** When the first session of this turn started. */
  let since: number | undefined
  const isOver = () => since !== undefined && performance.now() - since >= turnMillis

  const next = () => {
    since = waiting.size === 0 ? undefined : performance.now()
    for (const go of waiting) {
      waiting.delete(go)
      go()
      if (isOver()) break
    }
    // The time used is reset at the end of the turn.
    if (since !== undefined) setImmediate(next)
  }

  /** Starts measuring the turn, unless it is measured already. */
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
    /** Resolves immediately if this turn has time left. */
    take: Effect.suspend(() => {
      begin()
      return waiting.size > 0 || isOver() ? wait : Effect.void
    }),
  }
}

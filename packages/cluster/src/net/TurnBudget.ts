/**
 * The share of one turn of the event loop that the peers of a process have together for work that could go on without
 * waiting, such as commands that were sent in advance.
 */

const millisecondsPerTurn = 5

let since: number | undefined

/** Returns whether the share of this turn is used up, so that the caller should go on in the next turn (`setImmediate`). */
export const isSpent = (): boolean => {
  const now = performance.now()
  if (since === undefined) {
    since = now
    setImmediate(() => (since = undefined))
  }
  return now - since >= millisecondsPerTurn
}

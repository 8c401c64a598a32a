/**
 * A time budget per turn of the event loop for work that never waits, such as pipelined commands. All peers of the process
 * share it.
 */

const millisecondsPerTurn = 5

let since: number | undefined

/** Returns whether the budget of this turn is used up, so that the caller should continue in the next one (`setImmediate`). */
export const isSpent = (): boolean => {
  const now = performance.now()
  if (since === undefined) {
    since = now
    setImmediate(() => (since = undefined))
  }
  return now - since >= millisecondsPerTurn
}

/** Computes when the next attempt of a delivery is due. */

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Delays after the first to the sixth failed attempt, in milliseconds, from the start of the attempt. */
const waits = [30 * second, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 24 * hour] as const

export const attemptsInAll = waits.length + 1

/** Returns the time of the next attempt, or undefined after the seventh, when the delivery has failed. */
export const nextAttemptAt = (attemptNumber: number, startedAt: Date): Date | undefined => {
  const wait = waits[attemptNumber - 1]
  return wait === undefined ? undefined : new Date(startedAt.getTime() + wait)
}

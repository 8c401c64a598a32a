/** Measures what a fault does to others: how long they wait, and how long the event loop of the service is blocked. */
import { setTimeout as sleep } from "node:timers/promises"

/** Repeats the work until then (`performance.now`) and returns the durations in milliseconds. */
export const waitsOf = async (work: () => Promise<unknown>, until: number) => {
  const took: Array<number> = []
  while (performance.now() < until) {
    const start = performance.now()
    await work()
    took.push(performance.now() - start)
    await sleep(5)
  }
  return took
}

/**
 * Returns the turns of the event loop that the meter ({@link module:TurnMeter}) has reported, in CPU milliseconds. A report
 * may follow half a line of the log, since the output of a process combines two streams.
 */
export const turnsIn = (output: string): ReadonlyArray<number> =>
  [...output.matchAll(/held ([\d.]+) ms\n/g)].map(([, held]) => Number(held))

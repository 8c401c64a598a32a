/** Measures the waiting time of other callers. */
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

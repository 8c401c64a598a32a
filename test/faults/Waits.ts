/** Measures the waiting time of other callers. */
import { setTimeout as sleep } from "node:timers/promises"

/** Does it one time after the other until then (`performance.now`); answers how long each took, in milliseconds. */
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

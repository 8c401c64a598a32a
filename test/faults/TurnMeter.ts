/**
 * Loaded into a service (`NODE_OPTIONS=--import <this file>`), it says every half second for how long its event loop was
 * held at once: milliseconds that the thread was on a CPU between two turns. What other processes take does not count, nor
 * what its threads do, which load this too: they are there to be held.
 */
import { isMainThread } from "node:worker_threads"

let last = process.threadCpuUsage()
let most = 0
const tick = () => {
  const { user, system } = process.threadCpuUsage(last)
  last = process.threadCpuUsage()
  most = Math.max(most, (user + system) / 1000)
}

if (isMainThread) {
  setInterval(tick, 1).unref()
  setInterval(() => {
    process.stderr.write(`held ${most.toFixed(1)} ms\n`)
    most = 0
  }, 500).unref()
}

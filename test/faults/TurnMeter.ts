/**
 * Reports every half second for how long the event loop of a service was blocked, when loaded into it
 * (`NODE_OPTIONS=--import <this file>`): the maximum CPU time of the main thread between two turns, in milliseconds.
 * Other processes do not count, nor do worker threads, which load this file too but are meant to be busy.
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

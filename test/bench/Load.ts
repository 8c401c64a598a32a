/**
 * Runs operations concurrently for a fixed time: HTTP with wrk or with raw sockets in a thread, SMTP with those
 * sockets, anything else with a function in this process.
 */
import { once } from "node:events"
import { Worker } from "node:worker_threads"
import { type Call, type Load, type Order, percentileOf } from "./LoadOrder.ts"
import * as Wrk from "./Wrk.ts"

export type { Call, Load } from "./LoadOrder.ts"

export type Drive = (seconds: number) => Promise<Load>

export const driver = Wrk.program === undefined ? "raw sockets in a thread" : "wrk"

let thread: Worker | undefined

/** Drives one load at a time; concurrent measurements would distort each other. */
const bySockets = async (order: Order, seconds: number): Promise<Load> => {
  thread ??= new Worker(new URL("./LoadWorker.ts", import.meta.url))
  thread.ref()
  thread.postMessage({ order, seconds })
  const [load] = (await once(thread, "message")) as [Load]
  thread.unref()
  return load
}

export const http =
  (port: number, call: Call, connections: number): Drive =>
  (seconds) => {
    const order = { kind: "http", port, connections, call } as const
    return Wrk.program === undefined ? bySockets(order, seconds) : Wrk.drive(Wrk.program, order, seconds)
  }

export const smtp =
  (port: number, recipients: ReadonlyArray<string>, connections: number): Drive =>
  (seconds) =>
    bySockets({ kind: "smtp", port, connections, recipients }, seconds)

/** Drives a function of this process, whose cost is then part of the measurement on both sides. */
export const work =
  (width: number, one: (worker: number) => Promise<unknown>): Drive =>
  async (seconds) => {
    const start = performance.now()
    const end = start + seconds * 1000
    const waits: Array<number> = []
    await Promise.all(
      Array.from({ length: width }, async (_, worker) => {
        while (performance.now() < end) {
          const began = performance.now()
          await one(worker)
          waits.push(performance.now() - began)
        }
      }),
    )
    const took = (performance.now() - start) / 1000
    const sorted = waits.toSorted((a, b) => a - b)
    return {
      done: sorted.length,
      wrong: 0,
      seconds: took,
      p50: percentileOf(sorted, 0.5),
      p99: percentileOf(sorted, 0.99),
    }
  }

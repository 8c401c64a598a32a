/** The entry point of a verdict worker thread. It has no network access; look-ups are done by the process. */
import { readlinkSync } from "node:fs"
import { setPriority } from "node:os"
import { parentPort, workerData } from "node:worker_threads"
import { BoundedMap } from "@svc/domain/BoundedMap"
import { Timing } from "../../Timing.ts"
import { judge } from "./Verdict.ts"
import * as RecentVerdicts from "./RecentVerdicts.ts"
import type { FromThread, Records, ToThread } from "./VerdictWorker.ts"

const port = parentPort
if (port === null) throw new Error("This module is the entry of a thread")

const settings: unknown = workerData
if (settings === "patient") {
  // Large messages yield to small ones and to the process. Only Linux has priorities per thread.
  try {
    setPriority(Number(readlinkSync("/proc/thread-self").split("/").at(-1)), 10)
  } catch {
    // The thread keeps the priority of the process.
  }
}

const send = (message: FromThread) => port.postMessage(message)

interface Waiting {
  readonly resolve: (records: Records) => void
  readonly reject: (error: Error) => void
}
const waiting = new Map<number, Waiting>()
let lookups = 0

const answered = (lookup: number): Waiting | undefined => {
  const waiter = waiting.get(lookup)
  waiting.delete(lookup)
  return waiter
}

/**
 * Caches recent DNS answers, since a burst of messages from one sender repeats the same queries. The lifetime is short,
 * so that the process's shared cache decides. Only answers are shared, not pending queries: the process must know which
 * message waits.
 */
const cacheLimits = { millis: Timing.judgingAnswersMillis, names: 1_000 }
const recent = new BoundedMap<string, { readonly until: number; readonly records: Promise<Records> }>(cacheLimits.names)

const isAnswer = (error: { readonly code?: string }) => error.code === "ENOTFOUND" || error.code === "ENODATA"

const cached = (key: string, ask: () => Promise<Records>): Promise<Records> => {
  const known = recent.get(key)
  if (known !== undefined && known.until > performance.now()) return known.records
  const records = ask()
  const keep = () => {
    recent.set(key, { until: performance.now() + cacheLimits.millis, records })
  }
  // A missing name is an answer; a failed query is not.
  records.then(keep, (error: { readonly code?: string }) => (isAnswer(error) ? keep() : undefined))
  return records
}

const recentVerdicts = RecentVerdicts.make()

const begin = (job: number, bytes: Uint8Array, arrival: Parameters<typeof judge>[1]) => {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const lookup = (name: string, type: string) =>
    cached(
      `${type} ${name}`,
      () =>
        new Promise<Records>((resolve, reject) => {
          lookups++
          waiting.set(lookups, { resolve, reject })
          send({ _tag: "Lookup", job, lookup: lookups, name, type })
        }),
    )
  judge(raw, arrival, lookup, recentVerdicts).then(
    (judgement) => send({ _tag: "Judged", job, judgement }),
    (error: unknown) => send({ _tag: "Threw", job, message: error instanceof Error ? error.message : String(error) }),
  )
}

port.on("message", (message: ToThread) => {
  switch (message._tag) {
    case "Judge":
      return begin(message.job, message.raw, message.arrival)
    case "Answer":
      return answered(message.lookup)?.resolve(message.records)
    case "Failure":
      // The library reads Node's error codes.
      return answered(message.lookup)?.reject(Object.assign(new Error(message.code), { code: message.code }))
    case "Ping":
      return send({ _tag: "Pong" })
  }
})

// Reports that the worker has started. A later crash is caused by a message.
send({ _tag: "Pong" })

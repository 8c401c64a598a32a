/** The thread in which messages are judged. It knows no network: look-ups are answered by the process. */
import { readlinkSync } from "node:fs"
import { setPriority } from "node:os"
import { parentPort, workerData } from "node:worker_threads"
import { Timing } from "../../Timing.ts"
import { judge } from "./Verdict.ts"
import * as RecentVerdicts from "./RecentVerdicts.ts"
import type { FromThread, Records, ToThread } from "./Protocol.ts"

const port = parentPort
if (port === null) throw new Error("This module is the entry of a thread")

const settings: unknown = workerData
if (settings === "patient") {
  // What is large can wait for what is small, and for the process. Only Linux gives a thread a priority of its own.
  try {
    setPriority(Number(readlinkSync("/proc/thread-self").split("/").at(-1)), 10)
  } catch {
    // Then it has the process's.
  }
}

const say = (message: FromThread) => port.postMessage(message)

interface Waiting {
  readonly resolve: (records: Records) => void
  readonly reject: (error: Error) => void
}
const waiting = new Map<number, Waiting>()
let lookups = 0

const answered = (lookup: number): Waiting | undefined => {
  const one = waiting.get(lookup)
  waiting.delete(lookup)
  return one
}

/**
 * Answers that were just given are not asked for again: a burst of one sender's messages asks the same. So briefly that
 * the process's own cache, which is everybody's, still decides what is known. Only answers are shared, never the wait
 * for one: the process must know who waits.
 */
const recent = new Map<string, { readonly until: number; readonly records: Promise<Records> }>()
const recently = { millis: Timing.judgingAnswersMillis, names: 1_000 }

const isAnswer = (error: { readonly code?: string }) => error.code === "ENOTFOUND" || error.code === "ENODATA"

const asked = (key: string, ask: () => Promise<Records>): Promise<Records> => {
  const known = recent.get(key)
  if (known !== undefined && known.until > performance.now()) return known.records
  const records = ask()
  const keep = () => {
    if (recent.size >= recently.names) recent.clear()
    recent.set(key, { until: performance.now() + recently.millis, records })
  }
  // That a name does not exist is an answer; that DNS did not answer is not.
  records.then(keep, (error: { readonly code?: string }) => (isAnswer(error) ? keep() : undefined))
  return records
}

const senders = RecentVerdicts.make()

const begin = (job: number, bytes: Uint8Array, arrival: Parameters<typeof judge>[1]) => {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const lookup = (name: string, type: string) =>
    asked(
      `${type} ${name}`,
      () =>
        new Promise<Records>((resolve, reject) => {
          lookups++
          waiting.set(lookups, { resolve, reject })
          say({ _tag: "Lookup", job, lookup: lookups, name, type })
        }),
    )
  judge(raw, arrival, lookup, senders).then(
    (judgement) => say({ _tag: "Judged", job, judgement }),
    (error: unknown) => say({ _tag: "Threw", job, message: error instanceof Error ? error.message : String(error) }),
  )
}

port.on("message", (message: ToThread) => {
  switch (message._tag) {
    case "Judge":
      return begin(message.job, message.raw, message.arrival)
    case "Answer":
      return answered(message.lookup)?.resolve(message.records)
    case "Failure":
      // The library reads node's error codes.
      return answered(message.lookup)?.reject(Object.assign(new Error(message.code), { code: message.code }))
    case "Ping":
      return say({ _tag: "Pong" })
  }
})

// The first sign of life: what ends the thread from here on is a message's doing.
say({ _tag: "Pong" })

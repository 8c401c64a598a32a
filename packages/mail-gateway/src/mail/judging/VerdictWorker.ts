/**
 * A verdict worker as seen from the process: started with its first message, and killed when it does not respond for
 * too long, which is the only remedy for an endless loop. The owner of its messages is notified.
 */
import { Worker } from "node:worker_threads"
import { Timing } from "../../Timing.ts"
import type { Arrival } from "../Origin.ts"
import type { Judgement } from "./Verdict.ts"

export interface Job {
  readonly id: number
  readonly raw: Buffer
  readonly arrival: Arrival
  /** Look-ups in progress. A message that waits for DNS uses no time of the worker. */
  lookups: number
  /** The number of look-ups so far. */
  asked: number
  /** When the message was given to its worker or, if the worker was still starting, when the worker first responded. */
  since: number
}

/** The messages between the process and a verdict worker. */
export type ToThread =
  | { readonly _tag: "Judge"; readonly job: number; readonly raw: Uint8Array; readonly arrival: Arrival }
  /** The reply to a look-up. `code` is Node's error code. */
  | { readonly _tag: "Answer"; readonly lookup: number; readonly records: Records }
  | { readonly _tag: "Failure"; readonly lookup: number; readonly code: string }
  /** Answered when the worker's event loop is free, so a worker stuck in a loop does not answer. */
  | { readonly _tag: "Ping" }

export type FromThread =
  | { readonly _tag: "Pong" }
  | {
      readonly _tag: "Lookup"
      readonly job: number
      readonly lookup: number
      readonly name: string
      readonly type: string
    }
  | { readonly _tag: "Judged"; readonly job: number; readonly judgement: Judgement }
  /** The judgement threw. The message is handled like one that killed its worker. */
  | { readonly _tag: "Threw"; readonly job: number; readonly message: string }

export type Records = Array<string> | Array<Array<string>>

export interface Owner {
  /** Returns the monotonic time in milliseconds. */
  readonly now: () => number
  readonly lookup: (job: Job, name: string, type: string) => Promise<Records>
  readonly judged: (job: Job, judgement: Judgement) => void
  readonly threw: (job: Job, message: string) => void
  /** The worker died with these messages. `fresh` means that it never responded. */
  readonly died: (thread: VerdictWorker, jobs: ReadonlyArray<Job>, reason: string, fresh: boolean) => void
}

/** A worker needs little memory beside the message. One that needs more is treated as unresponsive. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }

/** A worker with fewer jobs than this, none of them older, is expected to be free soon. */
const quickly = { jobs: 3, millis: Timing.judgingBriskMillis }

/** The bytes copied per turn of the event loop. */
const slice = 1024 * 1024

export class VerdictWorker {
  readonly jobs = new Map<number, Job>()
  private worker: Worker | undefined
  private fresh = true
  private unanswered = 0
  private readonly owner: Owner
  private readonly entry: URL
  private readonly isPatient: boolean

  /** A patient worker runs at low priority. */
  constructor(owner: Owner, options: { readonly entry: URL; readonly isPatient: boolean }) {
    this.owner = owner
    this.entry = options.entry
    this.isPatient = options.isPatient
  }

  /** The number of messages that do not wait for DNS. */
  get running(): number {
    let count = 0
    for (const job of this.jobs.values()) if (job.lookups === 0) count++
    return count
  }

  /**
   * Returns whether the current work is small and recent, so that a further message is soon done. Waiting is cheaper
   * than waking another worker for each message of a burst.
   */
  isBrisk(now: number): boolean {
    let running = 0
    for (const { lookups, since } of this.jobs.values()) {
      if (lookups > 0) continue
      if (now - since > quickly.millis) return false
      running++
    }
    return running < quickly.jobs
  }

  /** Throws if no worker can be started. */
  give(job: Job): void {
    const worker = this.worker ?? this.start()
    job.since = this.owner.now()
    job.lookups = 0
    this.jobs.set(job.id, job)
    // Transfers a copy; the original is kept to be stored.
    this.transfer(worker, job, new Uint8Array(job.raw.length), 0)
  }

  /** Copies a slice per turn of the event loop, which a large copy would block for too long. */
  private transfer(worker: Worker, job: Job, copy: Uint8Array<ArrayBuffer>, from: number): void {
    copy.set(job.raw.subarray(from, from + slice), from)
    const next = from + slice
    if (next < copy.length) {
      setImmediate(() => {
        if (this.worker === worker && this.jobs.get(job.id) === job) this.transfer(worker, job, copy, next)
      })
    } else this.send(worker, { _tag: "Judge", job: job.id, raw: copy, arrival: job.arrival }, [copy.buffer])
  }

  /**
   * Called at regular intervals. Returns whether the worker is busy and has not responded for more than `intervals` of
   * them. A starting worker has more time.
   */
  isSilent(intervals: number): boolean {
    if (this.worker === undefined || this.jobs.size === 0) {
      this.unanswered = 0
      return false
    }
    this.send(this.worker, { _tag: "Ping" })
    this.unanswered++
    return this.unanswered > intervals * (this.fresh ? 6 : 1)
  }

  /** Removes a job whose result is no longer needed. */
  forget(job: Job): void {
    this.jobs.delete(job.id)
  }

  end(reason?: string): void {
    const worker = this.worker
    if (worker === undefined) return
    this.worker = undefined
    worker.removeAllListeners()
    worker.on("error", () => {})
    void worker.terminate()
    const jobs = [...this.jobs.values()]
    this.jobs.clear()
    const fresh = this.fresh
    this.fresh = true
    this.unanswered = 0
    if (reason !== undefined) this.owner.died(this, jobs, reason, fresh)
  }

  private start(): Worker {
    const worker = new Worker(this.entry, {
      resourceLimits,
      name: "mail-judging",
      workerData: this.isPatient ? "patient" : null,
    })
    worker.unref()
    worker.on("message", (message: FromThread) => this.onMessage(worker, message))
    worker.on("error", (error) => this.end(error instanceof Error ? error.message : String(error)))
    worker.on("exit", (code) => this.end(`exit ${code}`))
    this.worker = worker
    return worker
  }

  private send(worker: Worker, message: ToThread, transfer: Array<ArrayBuffer> = []): void {
    worker.postMessage(message, transfer)
  }

  private onMessage(worker: Worker, message: FromThread): void {
    if (this.fresh) {
      this.fresh = false
      // The time of a message does not include the start of its worker.
      for (const job of this.jobs.values()) job.since = this.owner.now()
    }
    this.unanswered = 0
    switch (message._tag) {
      case "Pong":
        return
      case "Judged":
      case "Threw": {
        const job = this.jobs.get(message.job)
        if (job === undefined) return
        this.jobs.delete(message.job)
        return message._tag === "Judged"
          ? this.owner.judged(job, message.judgement)
          : this.owner.threw(job, message.message)
      }
      case "Lookup": {
        const job = this.jobs.get(message.job)
        if (job === undefined) return
        const { lookup } = message
        job.lookups++
        job.asked++
        const answer = (reply: ToThread) => {
          // The next worker begins its own count of look-ups.
          if (this.worker !== worker) return
          job.lookups--
          this.send(worker, reply)
        }
        this.owner.lookup(job, message.name, message.type).then(
          (records) => answer({ _tag: "Answer", lookup, records }),
          (error: { readonly code?: string }) => answer({ _tag: "Failure", lookup, code: error.code ?? "EUNKNOWN" }),
        )
      }
    }
  }
}

/**
 * One judging thread as the process sees it: started at its first message, and ended when it has not answered for too
 * long, which is all that can be done about a loop. Whoever had messages in it is told that it died.
 */
import { Worker } from "node:worker_threads"
import { Timing } from "../../Timing.ts"
import type { Arrival } from "../Origin.ts"
import type { Judgement } from "./Verdict.ts"
import type { FromThread, Records, ToThread } from "./Protocol.ts"

export interface Job {
  readonly id: number
  readonly raw: Buffer
  readonly arrival: Arrival
  /** Look-ups that are under way; a job that waits for DNS takes no time of the thread. */
  lookups: number
  /** Look-ups in all. */
  asked: number
  /** When it was given to a thread. */
  since: number
}

export interface Owner {
  readonly lookup: (job: Job, name: string, type: string) => Promise<Records>
  readonly judged: (job: Job, judgement: Judgement) => void
  readonly threw: (job: Job, message: string) => void
  /** The thread is gone, and with it what was in it. `fresh`: it never answered anything. */
  readonly died: (thread: Thread, jobs: ReadonlyArray<Job>, reason: string, fresh: boolean) => void
}

/** A thread needs little beside the message; one that takes more is treated as one that does not answer. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }

/** So many messages are soon judged, unless the first of them has been there for so long. */
const brisk = { jobs: 3, millis: Timing.judgingBriskMillis }

/** Bytes that are copied at once. */
const slice = 1024 * 1024

export class Thread {
  readonly jobs = new Map<number, Job>()
  private worker: Worker | undefined
  private fresh = true
  private unanswered = 0
  private readonly owner: Owner
  private readonly entry: URL
  private readonly isPatient: boolean

  /** A patient thread leaves the processor to whoever else wants it. */
  constructor(owner: Owner, options: { readonly entry: URL; readonly isPatient: boolean }) {
    this.owner = owner
    this.entry = options.entry
    this.isPatient = options.isPatient
  }

  /** Jobs that are not waiting for DNS. */
  get running(): number {
    let count = 0
    for (const job of this.jobs.values()) if (job.lookups === 0) count++
    return count
  }

  /**
   * Whether what it works on is little and has just come, so that it will soon have done one more. That costs less than
   * waking another thread, which each letter of a burst would.
   */
  isBrisk(now: number): boolean {
    let running = 0
    for (const { lookups, since } of this.jobs.values()) {
      if (lookups > 0) continue
      if (now - since > brisk.millis) return false
      running++
    }
    return running < brisk.jobs
  }

  get isStarted(): boolean {
    return this.worker !== undefined
  }

  /** Throws where no thread can be had. */
  give(job: Job, now: number): void {
    const worker = this.worker ?? this.start()
    job.since = now
    job.lookups = 0
    this.jobs.set(job.id, job)
    // A copy of its own is handed over; the message itself stays with us to be stored.
    this.hand(worker, job, new Uint8Array(job.raw.length), 0)
  }

  /** A slice in each turn of the event loop: to copy a large message takes longer than it may be held for. */
  private hand(worker: Worker, job: Job, copy: Uint8Array<ArrayBuffer>, from: number): void {
    copy.set(job.raw.subarray(from, from + slice), from)
    const next = from + slice
    if (next < copy.length) {
      setImmediate(() => {
        if (this.worker === worker && this.jobs.get(job.id) === job) this.hand(worker, job, copy, next)
      })
    } else this.say(worker, { _tag: "Judge", job: job.id, raw: copy, arrival: job.arrival }, [copy.buffer])
  }

  /**
   * To be called at even intervals: whether the thread has work and has been silent over more than so many of them.
   * One that is starting has longer.
   */
  isSilent(intervals: number): boolean {
    if (this.worker === undefined || this.jobs.size === 0) {
      this.unanswered = 0
      return false
    }
    this.say(this.worker, { _tag: "Ping" })
    this.unanswered++
    return this.unanswered > intervals * (this.fresh ? 6 : 1)
  }

  /** Takes back a job whose answer nobody waits for any more. */
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
    worker.on("message", (message: FromThread) => this.hear(worker, message))
    worker.on("error", (error) => this.end(error instanceof Error ? error.message : String(error)))
    worker.on("exit", (code) => this.end(`exit ${code}`))
    this.worker = worker
    return worker
  }

  private say(worker: Worker, message: ToThread, transfer: Array<ArrayBuffer> = []): void {
    worker.postMessage(message, transfer)
  }

  private hear(worker: Worker, message: FromThread): void {
    this.fresh = false
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
          job.lookups--
          if (this.worker === worker) this.say(worker, reply)
        }
        this.owner.lookup(job, message.name, message.type).then(
          (records) => answer({ _tag: "Answer", lookup, records }),
          (error: { readonly code?: string }) => answer({ _tag: "Failure", lookup, code: error.code ?? "EUNKNOWN" }),
        )
      }
    }
  }
}

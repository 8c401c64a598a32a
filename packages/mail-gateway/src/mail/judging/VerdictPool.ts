/**
 * A pool of worker threads that judge messages, so that no message can block the process or, as long as there are
 * workers, other messages. One worker is reserved for small messages. A message whose worker had to be killed is
 * accepted with the verdict `error`.
 *
 * If several messages were in a killed worker, each is retried alone in a separate worker to find the cause. If no
 * worker can be started the work is done in the process.
 */
import { availableParallelism } from "node:os"
import { showsAddresses } from "@svc/cluster/observe/SessionLog"
import { monotonicOf } from "@svc/domain/MonotonicTime"
import { Clock, Effect, FiberSet, Schema } from "effect"
import { Timing } from "../../Timing.ts"
import type { Arrival } from "../Origin.ts"
import { Resolver } from "../Resolver.ts"
import type { Judgement } from "./Verdict.ts"
import { threadEntry } from "../ThreadEntry.ts"
import { type Job, type Owner, VerdictWorker, type Records } from "./VerdictWorker.ts"

/** The queue is too long to be processed in time. The message is not judged. */
class VerdictPoolOverloaded extends Schema.TaggedError<VerdictPoolOverloaded>()("JudgingOverloaded", {}) {}

interface JudgingSettings {
  /** 0 judges in the process. */
  readonly workers: number
  /** How long a worker may stay silent, in milliseconds. */
  readonly silenceMillis: number
  /** The module that a worker runs. */
  readonly entry: URL
}

const defaults = {
  workers: Math.min(4, Math.max(2, availableParallelism())),
  silenceMillis: Timing.judgingSilenceMillis,
}

export const limits = {
  /** Larger messages, in bytes, are not given to the worker for small ones. */
  small: 128 * 1024,
  /** The maximum number of messages that a worker processes concurrently, not counting and counting messages that wait for DNS. */
  running: 4,
  inThread: 500,
  /** The maximum size of the queue. */
  waiting: 1_000,
  waitingBytes: 256 * 1024 * 1024,
  /** The maximum number of look-ups per message. SPF and DMARC need a few, each signature one. */
  lookups: 120,
}

/** Loaded in the process only after a worker failed. */
const judgement = () => import("./Verdict.ts")

interface Pending {
  readonly job: Job
  readonly done: (judgement: Judgement) => void
}

export const make = Effect.fnUntraced(function* (options: Partial<JudgingSettings> = {}) {
  const settings = { ...defaults, ...options }
  const entry = settings.entry ?? (yield* threadEntry("Worker", import.meta.url))
  const resolver = yield* Resolver
  const clock = yield* Clock.Clock
  const run = yield* FiberSet.makeRuntimePromise()
  const runFork = yield* FiberSet.makeRuntime()
  const pending = new Map<number, Pending>()
  const small: Array<Job> = []
  const large: Array<Job> = []
  const suspects: Array<Job> = []
  let waitingBytes = 0
  let jobs = 0
  /** No worker is started before this time. */
  let noWorkersBefore = settings.workers === 0 ? Infinity : 0

  const now = () => monotonicOf(clock)

  const withoutThreads = (reason: string) => {
    noWorkersBefore = now() + Timing.judgingRetryMillis
    runFork(Effect.logWarning("Mail is judged in process for now, since a thread could not be started", { reason }))
  }

  /**
   * Looks up a name for a message. Beyond the message's limits on number and time the look-up fails like a DNS timeout.
   */
  const lookup = (job: Job, name: string, type: string): Promise<Records> => {
    // A message that waits for DNS frees its slot in the worker.
    dispatch()
    const left = job.since + Timing.verdictMillis - now()
    if (left <= 0 || job.asked > limits.lookups) return Promise.reject({ code: "ETIMEOUT" })
    return run(
      resolver.lookup(name, type).pipe(
        Effect.map((records) => records as Records),
        Effect.timeoutOrElse({ duration: left, orElse: () => Effect.fail({ code: "ETIMEOUT" }) }),
      ),
    )
  }

  const finish = (job: Job, judgement: Judgement) => {
    const one = pending.get(job.id)
    pending.delete(job.id)
    one?.done(judgement)
    dispatch()
  }

  const giveUp = (job: Job, reason: string) => {
    const from = showsAddresses ? job.arrival : {}
    runFork(Effect.logWarning("A message could not be judged", { reason, bytes: job.raw.length, ...from }))
    void judgement().then(({ minimal }) => finish(job, minimal(job.raw, job.arrival.host)))
  }

  const judgeInProcess = (job: Job) => {
    job.since = now()
    judgement()
      .then(({ judge }) =>
        judge(job.raw, job.arrival, (name, type) => {
          job.asked++
          return lookup(job, name, type)
        }),
      )
      .then(
        (judged) => finish(job, judged),
        (error: unknown) => giveUp(job, String(error)),
      )
  }

  /** Judges in the process what the worker could not be started for, except a suspect, which could block the process. */
  const withoutThread = (thread: VerdictWorker, job: Job, reason: string) =>
    thread === alone ? giveUp(job, reason) : judgeInProcess(job)

  const owner: Owner = {
    now,
    lookup,
    judged: finish,
    threw: giveUp,
    died: (thread, lost, reason, neverResponded) => {
      if (neverResponded && !reason.startsWith("silent")) {
        // The worker never started, so no workers are available.
        withoutThreads(reason)
        for (const job of lost) if (pending.has(job.id)) withoutThread(thread, job, reason)
      } else if (lost.length === 1) for (const job of lost) giveUp(job, reason)
      else suspects.push(...lost.filter(({ id }) => pending.has(id)))
      dispatch()
    },
  }
  /** The first worker is for small messages, if there are others. */
  const workers = Array.from(
    { length: settings.workers },
    (_, at) => new VerdictWorker(owner, { entry, isPatient: at > 0 }),
  )
  /** The worker in which suspect messages are retried, one at a time. */
  const alone = new VerdictWorker(owner, { entry, isPatient: true })
  const forLarge = workers.length > 1 ? workers.slice(1) : workers

  const isFree = (thread: VerdictWorker) => thread.running < limits.running && thread.jobs.size < limits.inThread
  const hasLarge = (thread: VerdictWorker) => thread.jobs.values().some(({ raw }) => raw.length > limits.small)

  const give = (thread: VerdictWorker, job: Job) => {
    try {
      thread.give(job)
    } catch (error) {
      thread.forget(job)
      withoutThreads(String(error))
      withoutThread(thread, job, String(error))
    }
  }

  const take = (queue: Array<Job>): Job | undefined => {
    const job = queue.shift()
    if (job !== undefined) waitingBytes -= job.raw.length
    return job
  }

  /** Assigns queued messages to free workers. Small messages prefer workers without large ones. */
  const dispatch = () => {
    if (now() < noWorkersBefore) {
      for (const queue of [small, large])
        for (let job = take(queue); job !== undefined; job = take(queue)) judgeInProcess(job)
      for (const job of suspects.splice(0)) giveUp(job, "ended with its thread")
      return
    }
    const suspect = alone.jobs.size === 0 ? suspects.shift() : undefined
    if (suspect !== undefined) give(alone, suspect)
    while (large.length > 0) {
      const thread = forLarge.find((one) => !hasLarge(one) && isFree(one))
      if (thread === undefined) break
      give(thread, take(large)!)
    }
    while (small.length > 0) {
      const free = workers.filter(isFree)
      const quiet = free.filter((one) => !hasLarge(one))
      const open = quiet.length > 0 ? quiet : free
      const thread = open.find((one) => one.isBrisk(now())) ?? open.sort((a, b) => a.jobs.size - b.jobs.size)[0]
      if (thread === undefined) break
      give(thread, take(small)!)
    }
  }

  /** Kills unresponsive workers, and ends idle ones. */
  const intervals = Math.max(1, Math.ceil(settings.silenceMillis / Timing.judgingPingMillis))
  let idle = 0
  const watch = setInterval(() => {
    // Counts the pool's own intervals, so that a pause of the whole process does not count as silence.
    for (const thread of [...workers, alone]) if (thread.isSilent(intervals)) thread.end("silent for too long")
    const overdue = now() - 2 * Timing.verdictMillis
    for (const thread of [...workers, alone]) {
      for (const job of thread.jobs.values()) {
        if (job.since > overdue) continue
        thread.forget(job)
        giveUp(job, "not done in time")
      }
    }
    idle = pending.size === 0 ? idle + 1 : 0
    if (idle * Timing.judgingPingMillis >= Timing.judgingIdleMillis) for (const one of [...workers, alone]) one.end()
  }, Timing.judgingPingMillis)
  watch.unref()

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearInterval(watch)
      for (const thread of [...workers, alone]) thread.end()
    }),
  )

  const judge = (raw: Buffer, arrival: Arrival) =>
    Effect.callback<Judgement, VerdictPoolOverloaded>((resume) => {
      if (small.length + large.length >= limits.waiting || waitingBytes + raw.length > limits.waitingBytes) {
        return resume(Effect.fail(new VerdictPoolOverloaded()))
      }
      idle = 0
      jobs++
      const job: Job = { id: jobs, raw, arrival, lookups: 0, asked: 0, since: now() }
      pending.set(job.id, { job, done: (judgement) => resume(Effect.succeed(judgement)) })
      const queue = raw.length > limits.small ? large : small
      waitingBytes += raw.length
      queue.push(job)
      dispatch()
      return Effect.sync(() => void pending.delete(job.id))
    })

  return { judge }
})

export type Judging = Effect.Success<ReturnType<typeof make>>

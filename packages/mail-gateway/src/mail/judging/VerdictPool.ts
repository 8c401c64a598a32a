/**
 * Judges messages in threads, so that nothing a sender writes holds up anybody else: neither the process, nor, as far as
 * there are threads, another message. Small messages have a thread that no large one is given to. A message whose
 * thread had to be ended is accepted all the same, with the verdict `error`.
 *
 * Where several messages were in a thread that had to be ended, each of them is tried again in a thread of its own:
 * whichever ends that too was the cause. Where no thread can be had the work is done in process.
 */
import { availableParallelism } from "node:os"
import * as path from "node:path"
import { showsAddresses } from "@svc/cluster/observe/SessionLog"
import { monotonicOf } from "@svc/domain/MonotonicTime"
import { Clock, Effect, FiberSet, Schema } from "effect"
import { Timing } from "../../Timing.ts"
import type { Arrival } from "../Origin.ts"
import { Resolver } from "../Resolver.ts"
import type { Judgement } from "./Verdict.ts"
import type { Records } from "./Protocol.ts"
import { type Job, type Owner, Thread } from "./VerdictWorker.ts"

/** More is waiting than will be worked off in time. Nothing is decided about the message. */
export class VerdictPoolOverloaded extends Schema.TaggedError<VerdictPoolOverloaded>()("JudgingOverloaded", {}) {}

export interface JudgingSettings {
  /** 0 judges in process. */
  readonly threads: number
  /** How long a thread may go without a word. */
  readonly silenceMillis: number
  /** The module that a thread runs. */
  readonly entry: URL
}

export const defaults: JudgingSettings = {
  threads: Math.min(4, Math.max(2, availableParallelism())),
  silenceMillis: Timing.judgingSilenceMillis,
  // Beside this module, or beside the bundle that this module is in.
  entry: new URL(`./Worker${path.extname(import.meta.url)}`, import.meta.url),
}

export const limits = {
  /** Bytes above which a message is a large one. */
  small: 128 * 1024,
  /** Messages of a thread that are worked on at once, those that wait for DNS not counted; and with them. */
  running: 4,
  inThread: 500,
  /** What waits for a thread. */
  waiting: 1_000,
  waitingBytes: 256 * 1024 * 1024,
  /** Look-ups of one message; SPF and DMARC need a few, each signature one. */
  lookups: 120,
}

/** The judge is loaded by its threads; here only where one of them gave up. */
const judgement = () => import("./Verdict.ts")

interface Pending {
  readonly job: Job
  readonly done: (judgement: Judgement) => void
}

export const make = Effect.fnUntraced(function* (options: Partial<JudgingSettings> = {}) {
  const settings = { ...defaults, ...options }
  const { entry } = settings
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
  /** Until when no thread is tried. */
  let inProcessUntil = settings.threads === 0 ? Infinity : 0

  const now = () => monotonicOf(clock)

  const withoutThreads = (reason: string) => {
    inProcessUntil = now() + Timing.judgingRetryMillis
    runFork(Effect.logWarning("Mail is judged in process for now, since a thread could not be started", { reason }))
  }

  /** A look-up for one message: it has so many, and all of them so long; what comes later is a DNS that did not answer. */
  const lookup = (job: Job, name: string, type: string): Promise<Records> => {
    // A message that waits for DNS leaves its place in the thread to the next.
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

  const spare = (job: Job, reason: string) => {
    const from = showsAddresses ? job.arrival : {}
    runFork(Effect.logWarning("A message could not be judged", { reason, bytes: job.raw.length, ...from }))
    void judgement().then(({ spared }) => finish(job, spared(job.raw, job.arrival.host)))
  }

  const here = (job: Job) => {
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
        (error: unknown) => spare(job, String(error)),
      )
  }

  const owner: Owner = {
    lookup,
    judged: finish,
    threw: spare,
    died: (thread, lost, reason, fresh) => {
      if (fresh && !reason.startsWith("silent")) {
        // It never came to life: there are no threads to be had here.
        withoutThreads(reason)
        for (const job of lost) if (pending.has(job.id)) here(job)
      } else if (thread === alone || lost.length === 1) for (const job of lost) spare(job, reason)
      else suspects.push(...lost.filter(({ id }) => pending.has(id)))
      dispatch()
    },
  }
  /** The first thread is for small messages alone, where there are others. */
  const threads = Array.from({ length: settings.threads }, (_, at) => new Thread(owner, { entry, isPatient: at > 0 }))
  /** Where suspects are tried, one at a time. */
  const alone = new Thread(owner, { entry, isPatient: true })
  const forLarge = threads.length > 1 ? threads.slice(1) : threads

  const isFree = (thread: Thread) => thread.running < limits.running && thread.jobs.size < limits.inThread
  const hasLarge = (thread: Thread) => thread.jobs.values().some(({ raw }) => raw.length > limits.small)

  const give = (thread: Thread, job: Job) => {
    try {
      thread.give(job, now())
    } catch (error) {
      thread.forget(job)
      withoutThreads(String(error))
      here(job)
    }
  }

  const take = (queue: Array<Job>): Job | undefined => {
    const job = queue.shift()
    if (job !== undefined) waitingBytes -= job.raw.length
    return job
  }

  /** Gives what waits to the threads that have room: small messages first where nothing large is at work. */
  const dispatch = () => {
    if (now() < inProcessUntil) {
      for (const queue of [small, large]) for (let job = take(queue); job !== undefined; job = take(queue)) here(job)
      for (const job of suspects.splice(0)) spare(job, "ended with its thread")
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
      const free = threads.filter(isFree)
      const quiet = free.filter((one) => !hasLarge(one))
      const open = quiet.length > 0 ? quiet : free
      const thread = open.find((one) => one.isBrisk(now())) ?? open.sort((a, b) => a.jobs.size - b.jobs.size)[0]
      if (thread === undefined) break
      give(thread, take(small)!)
    }
  }

  /** Ends threads that have gone silent, and those that nothing was asked of for long. */
  const intervals = Math.max(1, Math.ceil(settings.silenceMillis / Timing.judgingPingMillis))
  let idle = 0
  const watch = setInterval(() => {
    // Counted in our own intervals: where the whole process stood still, a thread was not silent.
    for (const thread of [...threads, alone]) if (thread.isSilent(intervals)) thread.end("silent for too long")
    const overdue = now() - 2 * Timing.verdictMillis
    for (const thread of [...threads, alone]) {
      for (const job of thread.jobs.values()) {
        if (job.since > overdue) continue
        thread.forget(job)
        spare(job, "not done in time")
      }
    }
    idle = pending.size === 0 ? idle + 1 : 0
    if (idle * Timing.judgingPingMillis >= Timing.judgingIdleMillis) for (const one of [...threads, alone]) one.end()
  }, Timing.judgingPingMillis)
  watch.unref()

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearInterval(watch)
      for (const thread of [...threads, alone]) thread.end()
    }),
  )

  const judge = (raw: Buffer, arrival: Arrival) =>
    Effect.callback<Judgement, VerdictPoolOverloaded>((resume) => {
      if (small.length + large.length >= limits.waiting || waitingBytes + raw.length > limits.waitingBytes) {
        return resume(Effect.fail(new VerdictPoolOverloaded()))
      }
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

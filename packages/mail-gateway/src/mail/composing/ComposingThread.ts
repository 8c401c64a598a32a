/**
 * A worker thread that runs one task at a time, in order. The thread starts with the first task and ends when idle. A task
 * that exceeds its time limit ends the thread, which is the only remedy for an endless loop.
 */
import { Worker } from "node:worker_threads"
import type { Letter, SubmittedMessage } from "@svc/cluster/mail/sending/Composer"
import { Context, Effect, Layer, Schema } from "effect"
import type { ParsedMail } from "@svc/domain/mail/Message"
import type { NewMail } from "@svc/domain/mail/Sending"
import { Timing } from "../../Timing.ts"
import { threadEntry } from "../ThreadEntry.ts"
import type { Picture } from "./DraftMessage.ts"
import type { Outcome } from "./MessageRewriter.ts"
import type { Written } from "./MessageWriter.ts"

/** The task timed out, or the queue is full (`busy`). */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", {
  message: Schema.String,
  busy: Schema.Boolean,
}) {}

/** The maximum length of the queue; each task may hold a message of maximum size. */
const waitingAtMost = 32

interface ThreadSettings {
  /** The module that the thread runs. */
  readonly entry: URL
  /** The time limit of a task, without the start of the thread. */
  readonly taskMillis: number
}

const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64 }

/** The messages between the process and a composing thread: one task at a time, and its result. */
export type Task =
  | { readonly _tag: "Write"; readonly letter: Letter }
  | { readonly _tag: "Rewrite"; readonly manuscript: SubmittedMessage }
  | { readonly _tag: "Read"; readonly raw: Uint8Array }
  | { readonly _tag: "Picture"; readonly picture: Picture }
  | { readonly _tag: "Draft"; readonly raw: Uint8Array }

export type Done =
  | { readonly _tag: "Written"; readonly written: Written }
  | { readonly _tag: "Rewritten"; readonly outcome: Outcome }
  | { readonly _tag: "Read"; readonly parsed: ParsedMail }
  | { readonly _tag: "Pictured"; readonly raw: Uint8Array }
  | { readonly _tag: "Drafted"; readonly mail: NewMail | undefined }
  | { readonly _tag: "Threw"; readonly message: string }

interface Waiting {
  readonly task: Task
  readonly resume: (answer: Effect.Effect<Done, TaskFailed>) => void
}

const make = Effect.fnUntraced(function* (options: Partial<ThreadSettings> = {}) {
  const { taskMillis = Timing.composingMillis } = options
  const entry = options.entry ?? (yield* threadEntry("ComposingWorker", import.meta.url))
  const waiting: Array<Waiting> = []
  let current: Waiting | undefined
  let worker: Worker | undefined
  let timer: NodeJS.Timeout | undefined

  const end = () => {
    worker?.removeAllListeners()
    worker?.on("error", () => {})
    void worker?.terminate()
    worker = undefined
  }

  const settle = (answer: Effect.Effect<Done, TaskFailed>) => {
    clearTimeout(timer)
    const one = current
    current = undefined
    one?.resume(answer)
    next()
  }

  /** Ends an unusable thread and fails its current task. */
  const fail = (message: string) => {
    end()
    settle(Effect.fail(new TaskFailed({ message, busy: false })))
  }

  const started = () => {
    const thread = new Worker(entry, { resourceLimits, name: "mail-composing" })
    thread.unref()
    thread.on("message", (done: Done) => settle(Effect.succeed(done)))
    thread.on("error", (error) => fail(String(error)))
    thread.on("exit", (code) => fail(`exit ${code}`))
    return thread
  }

  const next = () => {
    if (current !== undefined) return
    current = waiting.shift()
    if (current === undefined) {
      timer = setTimeout(end, Timing.composingIdleMillis)
      timer.unref()
      return
    }
    clearTimeout(timer)
    const startMillis = worker === undefined ? Timing.composingStartMillis : 0
    worker ??= started()
    timer = setTimeout(() => fail("timed out"), startMillis + taskMillis)
    worker.postMessage(current.task)
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearTimeout(timer)
      end()
    }),
  )

  const run = (task: Task) =>
    Effect.callback<Done, TaskFailed>((resume) => {
      if (waiting.length >= waitingAtMost) {
        return resume(Effect.fail(new TaskFailed({ message: "the composing queue is full", busy: true })))
      }
      const one = { task, resume }
      waiting.push(one)
      next()
      return Effect.sync(() => {
        const index = waiting.indexOf(one)
        if (index >= 0) waiting.splice(index, 1)
      })
    })

  const threw = (done: Done) => Effect.die(new Error(done._tag === "Threw" ? done.message : `unexpected: ${done._tag}`))

  return {
    write: (letter: Letter) =>
      Effect.flatMap(run({ _tag: "Write", letter }), (done) =>
        done._tag === "Written" ? Effect.succeed(done.written) : threw(done),
      ),
    rewrite: (manuscript: SubmittedMessage) =>
      Effect.flatMap(run({ _tag: "Rewrite", manuscript }), (done) =>
        done._tag === "Rewritten" ? Effect.succeed(done.outcome) : threw(done),
      ),
    read: (raw: Uint8Array) =>
      Effect.flatMap(run({ _tag: "Read", raw }), (done) =>
        done._tag === "Read" ? Effect.succeed(done.parsed) : threw(done),
      ),
    /** Renders a draft for mail programs. */
    picture: (picture: Picture) =>
      Effect.flatMap(run({ _tag: "Picture", picture }), (done) =>
        done._tag === "Pictured" ? Effect.succeed(Buffer.from(done.raw)) : threw(done),
      ),
    /** Parses a message as a draft of the API. Returns undefined if it cannot be represented. */
    draft: (raw: Uint8Array) =>
      Effect.flatMap(run({ _tag: "Draft", raw }), (done) =>
        done._tag === "Drafted" ? Effect.succeed(done.mail) : threw(done),
      ),
  }
})

export class ComposingThread extends Context.Service<ComposingThread, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/composing/ComposingThread",
) {
  static readonly layerWith = (options: Partial<ThreadSettings>) => Layer.effect(ComposingThread, make(options))
  static readonly layer = ComposingThread.layerWith({})
}

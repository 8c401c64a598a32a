/**
 * A thread that does one task at a time, in the order in which they came. It is started at its first task and ended when
 * it has none for a while, or when a task takes too long, which is all that can be done about a loop.
 */
import * as path from "node:path"
import { Worker } from "node:worker_threads"
import type { Letter, Manuscript } from "@svc/cluster/mail/sending/Composer"
import { Context, Effect, Layer, Schema } from "effect"
import { Timing } from "../../Timing.ts"
import type { Done, Task } from "./Tasks.ts"

/** Nothing was made: the task took too long, or was one too many (`busy`). */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", {
  message: Schema.String,
  busy: Schema.Boolean,
}) {}

/** Tasks that wait; each may hold a message of the largest size. */
const waitingAtMost = 32

/** Beside this module, or beside the bundle that this module is in. */
const entry = new URL(`./ComposingWorker${path.extname(import.meta.url)}`, import.meta.url)

const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64 }

interface Waiting {
  readonly task: Task
  readonly resume: (answer: Effect.Effect<Done, TaskFailed>) => void
}

const make = Effect.gen(function* () {
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

  /** The thread is of no use any more, and what was in it is lost. */
  const lose = (message: string) => {
    end()
    settle(Effect.fail(new TaskFailed({ message, busy: false })))
  }

  const started = () => {
    const thread = new Worker(entry, { resourceLimits, name: "mail-composing" })
    thread.unref()
    thread.on("message", (done: Done) => settle(Effect.succeed(done)))
    thread.on("error", (error) => lose(String(error)))
    thread.on("exit", (code) => lose(`exit ${code}`))
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
    worker ??= started()
    timer = setTimeout(() => lose("not done in time"), Timing.composingMillis)
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
        return resume(Effect.fail(new TaskFailed({ message: "too many messages are being written", busy: true })))
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
    rewrite: (manuscript: Manuscript) =>
      Effect.flatMap(run({ _tag: "Rewrite", manuscript }), (done) =>
        done._tag === "Rewritten" ? Effect.succeed(done.outcome) : threw(done),
      ),
    read: (raw: Uint8Array) =>
      Effect.flatMap(run({ _tag: "Read", raw }), (done) =>
        done._tag === "Read" ? Effect.succeed(done.parsed) : threw(done),
      ),
  }
})

export class ComposingThread extends Context.Service<ComposingThread, Effect.Success<typeof make>>()(
  "@svc/mail-gateway/mail/composing/ComposingThread",
) {
  static readonly layer = Layer.effect(ComposingThread, make)
}

/**
 * A verdict worker whose verdicts describe the worker. The text of a message says what to do: `reply` at once, `hold` until
 * the next ping, reply `twice`, `ask 3` look-ups one after the other and reply or `hold`, `fail`, `exit`, or be `mute` from then on.
 */
import { hash } from "node:crypto"
import { parentPort, resourceLimits, threadId, workerData } from "node:worker_threads"
import type { ToThread } from "@svc/mail-gateway/mail/judging/VerdictWorker"

/** What the worker returns instead of a verdict. */
export interface Reported {
  readonly thread: number
  readonly isPatient: boolean
  readonly memory: number | undefined
  readonly bytes: number
  readonly sha256: string
  /** The number of the worker's unfinished messages when this one began. */
  readonly beside: number
  /** The replies to its look-ups, in order. */
  readonly replies: ReadonlyArray<unknown>
}

let isMute = false
const send = (message: unknown) => void (isMute || parentPort?.postMessage(message))
const unfinished = new Set<number>()
const held: Array<() => void> = []
const replies = new Map<number, (reply: unknown) => void>()

const begin = ({ job, raw }: ToThread & { readonly _tag: "Judge" }) => {
  const beside = unfinished.size
  const text = Buffer.from(raw.buffer, raw.byteOffset, Math.min(raw.length, 100)).toString()
  const [action, count] = text.trim().split(" ")
  const finish = (replies: ReadonlyArray<unknown> = []) => {
    unfinished.delete(job)
    const worker = {
      thread: threadId,
      isPatient: workerData === "patient",
      memory: resourceLimits.maxOldGenerationSizeMb,
    }
    send({
      _tag: "Judged",
      job,
      judgement: { ...worker, bytes: raw.length, sha256: hash("sha256", raw), beside, replies },
    })
  }
  unfinished.add(job)
  if (action === "exit") return process.exit(7)
  if (action === "mute") isMute = true
  if (action === "twice") finish(["first"])
  if (action === "fail") return send({ _tag: "Threw", job, message: "failed" })
  void ask(job, Number(count ?? 0)).then((answers) => {
    if (action === "hold") held.push(() => finish(answers))
    else finish(answers)
  })
}

/** Like a real worker, each one counts its look-ups from one. */
let lookups = 0

const ask = async (job: number, count: number) => {
  const answers: Array<unknown> = []
  for (let at = 0; at < count; at++) {
    const lookup = ++lookups
    send({ _tag: "Lookup", job, lookup, name: `${at}.example.org`, type: "TXT" })
    answers.push(await new Promise((resolve) => replies.set(lookup, resolve)))
  }
  return answers
}

parentPort?.on("message", (message: ToThread) => {
  if (message._tag === "Judge") return begin(message)
  if (message._tag !== "Ping") return replies.get(message.lookup)?.("code" in message ? message.code : message.records)
  send({ _tag: "Pong" })
  for (const finish of held.splice(0)) finish()
})
send({ _tag: "Pong" })

/** The code of a verdict worker, run in the test: which names it asks the process for, and its priority. */
import * as path from "node:path"
import type { FromThread, ToThread } from "@svc/mail-gateway/mail/judging/VerdictWorker"
import { Timing } from "@svc/mail-gateway/Timing"
import { beforeEach, expect, it, vi } from "vitest"
import { root } from "../house/Imports.ts"

interface Thread {
  workerData: unknown
  receive: (message: unknown) => void
  send: (message: unknown) => void
  setPriority: (thread: number, priority: number) => void
}
const thread = vi.hoisted((): Thread => ({
  workerData: null,
  receive: () => {},
  send: () => {},
  setPriority: () => {},
}))
vi.mock("node:worker_threads", () => ({
  get workerData() {
    return thread.workerData
  },
  parentPort: {
    on: (_: string, receive: (message: unknown) => void) => (thread.receive = receive),
    postMessage: (message: unknown) => thread.send(message),
  },
}))
vi.mock("node:os", async (original) => ({
  ...(await original<object>()),
  setPriority: (id: number, priority: number) => thread.setPriority(id, priority),
}))

/** Starts another instance of the worker, without a reset of the modules that other test files share. */
const started = async (workerData: unknown) => {
  thread.workerData = workerData
  await import(path.join(root, `packages/mail-gateway/src/mail/judging/Worker.ts?${crypto.randomUUID()}`))
  return (message: ToThread) => thread.receive(message)
}

beforeEach(() => void vi.restoreAllMocks())

it("a verdict worker asks for a name and type again if the answer has expired or the query failed", async () => {
  const zone: Readonly<Record<string, string | Array<string>>> = {
    "TXT example.org": ["v=spf1 a -all"],
    "A example.org": "192.0.2.1",
  }
  const worker = await started(null)
  let now = performance.now()
  vi.spyOn(performance, "now").mockImplementation(() => now)
  let job = 0
  /** Judges a message, and returns its SPF result and the queries. */
  const judged = (domain: string) =>
    new Promise<readonly [spf: string, asked: ReadonlyArray<string>]>((resolve, reject) => {
      const asked: Array<string> = []
      thread.send = (message) => {
        const received = message as FromThread
        if (received._tag === "Judged") resolve([received.judgement.origin.spf, asked])
        if (received._tag === "Threw") reject(new Error(received.message))
        if (received._tag !== "Lookup") return
        const { lookup, type, name } = received
        asked.push(`${type} ${name}`)
        const record = zone[`${type} ${name}`]
        if (record !== undefined) worker({ _tag: "Answer", lookup, records: [record] as Array<string> })
        else worker({ _tag: "Failure", lookup, code: name.startsWith("down") ? "ETIMEOUT" : "ENOTFOUND" })
      }
      job++
      // Another sender, so that the result of the whole evaluation is not in a cache.
      const arrival = { ip: "192.0.2.1", helo: "x", mailFrom: `a${job}@${domain}`, host: "mail.localhost" }
      worker({ _tag: "Judge", job, raw: Buffer.from("From: a@author.example, b@author.example\r\n\r\n"), arrival })
    })
  const queries = ["TXT example.org", "A example.org", "AAAA example.org"]
  expect(await judged("example.org")).toEqual(["pass", queries])
  now += Timing.judgingAnswersMillis - 1
  expect(await judged("example.org")).toEqual(["pass", []])
  now += 1
  expect(await judged("example.org")).toEqual(["pass", queries])
  // The answer that a name does not exist is cached, too.
  expect((await judged("missing.example"))[1]).toEqual(["TXT missing.example"])
  expect((await judged("missing.example"))[1]).toEqual([])
  for (const _ of [1, 2]) expect((await judged("down.example"))[1]).toEqual(["TXT down.example"])
})

it.runIf(process.platform === "linux")("only a patient verdict worker has a low priority", async () => {
  const priorities: Array<number> = []
  thread.setPriority = (_, priority) => void priorities.push(priority)
  await started(null)
  expect(priorities).toEqual([])
  await started("patient")
  expect(priorities).toEqual([10])
})

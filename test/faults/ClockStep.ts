/**
 * Steps the clock of the service's processes by an hour forward and back under load, while the clock of the store stays
 * correct.
 */
import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { call, signUp } from "../harness/Client.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { type Row } from "../harness/Report.ts"
import { manyIdentities } from "./Cluster.ts"
import { figures, outcome, timed } from "./Load.ts"
import { missing, register } from "./Writes.ts"

/** Returns libfaketime (the Debian package faketime), which steps the clock of a running process. */
const library = () => {
  const [found] = globSync("/usr/lib/{*/,}faketime/libfaketime.so.1")
  if (found === undefined || !existsSync(found)) {
    throw new Error("the row changes clocks by libfaketime, which is not installed (apt-get install faketime)")
  }
  return found
}

/** Environment of a process whose wall clock can be changed. The monotonic clock stays, since nothing can set it. */
export const fakeTime = () => ({
  LD_PRELOAD: library(),
  DONT_FAKE_MONOTONIC: "1",
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
})

/** The seconds that a caller waits for mail, and after which the row gives up on its response. */
const waitSeconds = 8
const waitAtMost = 30

export const clockStep = async (): Promise<Row> => {
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-clock-"))
  const file = path.join(directory, "offset")
  /** Sets the clock to an offset from the true time, in seconds. */
  const step = (seconds: number) => writeFileSync(file, `${seconds < 0 ? "" : "+"}${seconds}s\n`)
  step(0)
  const env = {
    ...fakeTime(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_CACHE_DURATION: "1",
  }
  const deployment = await deploy()
  const receiver = await startReceiver()
  let isRunning = true
  try {
    const nodes = [await deployment.start([], env), await deployment.start([], env)]
    const [{ base, smtpPort }] = nodes as [(typeof nodes)[number]]
    const { session: token } = await signUp(base)
    const handles = await manyIdentities(base, token, 10)
    await call(base, "POST", `/api/identities/${handles[0]}/webhooks`, {
      token,
      body: { url: receiver.url, event_types: ["email.received"] },
    })
    const seen = outcome()
    const written: Array<string> = []
    const accepted: Array<string> = []
    const callers = handles.map(async (handle, first) => {
      for (let at = first; isRunning; at++) {
        const node = nodes[at % 2]!.base
        const id = await register(seen, node, token, handle)
        if (id !== undefined) written.push(id)
        await timed(seen, 200, node, "GET", `/api/identities/${handle}`, { token })
        await sleep(250)
      }
    })
    const mail = async (subject: string) => {
      await send(smtpPort, { from: "a@example.org", to: `${handles[0]}@mail.localhost`, subject, text: "t" })
      accepted.push(subject)
    }
    /** Returns how long a wait for mail that never arrives lasts, with a step in the middle, in seconds. */
    const waited = async (seconds: number) => {
      const since = performance.now()
      const waiting = call(base, "GET", `/api/identities/${handles[1]}/messages?wait=${waitSeconds}`, { token })
      await sleep(2000)
      step(seconds)
      await Promise.race([waiting.catch(() => {}), sleep(waitAtMost * 1000)])
      return (performance.now() - since) / 1000
    }
    const hour = 3600
    const waits: Array<number> = []
    let delivered = 0
    for (const [at, offset] of [hour, 0, -hour, 0].entries()) {
      waits.push(await waited(offset))
      await mail(`at step ${at}`)
      // Deliveries continue after a step.
      await until(`the delivery after step ${at}`, () => receiver.got.length > delivered, 30).catch(() => {})
      if (receiver.got.length > delivered) delivered = receiver.got.length
      await sleep(3000)
    }
    isRunning = false
    await Promise.all(callers)
    const subjects = () => new Set(receiver.got.map((one) => one.body.data.subject as string))
    const { lost, twice } = await missing(base, token, handles, written)
    const { body } = await call(base, "GET", `/api/identities/${handles[0]}/messages?limit=100`, { token })
    const listed = body.messages.map(({ subject }: { subject: string }) => subject) as ReadonlyArray<string>
    const lostMail = accepted.filter((subject) => !listed.includes(subject)).length
    const untold = accepted.filter((subject) => !subjects().has(subject)).length
    const wrongWaits = waits.filter((seconds) => seconds < waitSeconds - 0.5 || seconds >= waitAtMost).length
    const unexpected = [...seen.errors.keys()].filter((error) => error !== "503 unavailable")
    return {
      id: "clock-step",
      ok:
        unexpected.length === 0 &&
        lost === 0 &&
        twice === 0 &&
        lostMail === 0 &&
        untold === 0 &&
        wrongWaits === 0 &&
        receiver.got.length === accepted.length,
      what: "clocks of two processes stepped an hour forward and back, and an hour back and forward, under calls of 10 Identities",
      figures: {
        ...figures(seen),
        "writes lost": lost,
        "writes duplicated": twice,
        "mail lost": lostMail,
        "mail without an Event": untold,
        "mail with two Events": receiver.got.length - subjects().size,
        [`waits of ${waitSeconds} s, in s`]: waits.map((seconds) => seconds.toFixed(1)).join(", "),
      },
    }
  } finally {
    isRunning = false
    await deployment.stop()
    await receiver.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

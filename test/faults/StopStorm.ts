/**
 * Stops outgoing mail under load over three processes: while hundreds of messages are queued, and while the sending
 * process is suspended before DATA, loses the Identity, and resumes after the stop has returned.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { call } from "../harness/Client.ts"
import { deploy, type Deployment, type Process, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { type CrashingRelay, startCrashingRelay } from "./CrashingRelay.ts"
import { send, settings, writer } from "./Sending.ts"
import { inStore, whileLocked } from "./Store.ts"

const queued = 400
/** Longer than a permit that was granted with the lease. */
const pastPermitMillis = 2_500

/**
 * Where the sender is suspended. `reply`: it has all permissions before DATA and waits for the server's reply.
 * `permission`: the store has granted permission, and the sender has not read the result.
 */
const places = ["reply", "permission"] as const
type Place = (typeof places)[number]

const asking = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%join outbox o%'"

/** Suspends the next sender that names a recipient. */
const trap = (deployment: Deployment, senders: ReadonlyArray<Process>) => {
  let armed: { readonly place: Place; readonly caught: (victim: Process) => void } | undefined

  const beforeReply = async (victim: Process) => {
    victim.signal("SIGSTOP")
    await sleep(50)
  }

  /**
   * The sender requests another permission while a lock delays that statement, and is suspended before the statement
   * continues.
   */
  const inPermission = async (victim: Process, reply: () => void) => {
    await sleep(pastPermitMillis)
    await whileLocked(deployment, "lock table mailbox in access exclusive mode", async () => {
      reply()
      // A sender without a pending request is suspended as well.
      await until("the statement that asks", async () => (await inStore(deployment, asking)).length > 0, 3).catch(
        () => {},
      )
      victim.signal("SIGSTOP")
    })
  }

  return {
    /** Returns what the relay waits for before it replies to RCPT. */
    sprung: (sender: number): Promise<void> | undefined => {
      if (armed === undefined) return undefined
      const { place, caught } = armed
      armed = undefined
      const victim = senders[sender]!
      if (place === "reply") return beforeReply(victim).then(() => caught(victim))
      return new Promise((reply) => void inPermission(victim, reply).then(() => caught(victim)))
    },
    /** Resolves to the suspended process. */
    arm: (place: Place): Promise<Process> => new Promise((resolve) => (armed = { place, caught: resolve })),
  }
}

/** Stops or starts outgoing mail; repeats the request while the suspended process still counts as the owner. */
const change = async (base: string, { handle, token }: Awaited<ReturnType<typeof writer>>, outgoing: string) => {
  await until(
    `outgoing mail ${outgoing}`,
    async () =>
      (await call(base, "PATCH", `/api/identities/${handle}/mail`, { token, body: { outgoing } })).status === 200,
    60,
  )
  return performance.now()
}

export const stopStorm = async (): Promise<Row> => {
  const deployment = await deploy()
  const senders: Array<Process> = []
  const { arm, sprung } = trap(deployment, senders)
  const relays: Array<CrashingRelay> = []
  for (const sender of [0, 1])
    relays.push(
      await startCrashingRelay(
        () => "never",
        100,
        () => sprung(sender),
      ),
    )
  const copies = (word: string) =>
    relays.flatMap((relay) => relay.copies).filter(({ subject }) => subject.startsWith(word))
  const begunAfter = (at: number) =>
    relays.flatMap(({ dataTimes }) => dataTimes).filter((dataTimes) => dataTimes > at).length
  try {
    for (const { port } of relays) senders.push(await deployment.start(["actors"], settings(port)))
    const service = await deployment.start(["api", "mail"], settings(relays[0]!.port))
    const ada = await writer(service)

    let afterThaw = 0
    let rounds = 0
    for (const place of [...places, ...places]) {
      const caught = arm(place)
      const subject = `frozen ${rounds++}`
      if (!(await send(service.base, ada, subject))) throw new Error("the message was not accepted")
      const victim = await caught
      const answered = await change(service.base, ada, "stopped")
      victim.signal("SIGCONT")
      await sleep(1_500)
      afterThaw += begunAfter(answered)
      await change(service.base, ada, "active")
      await until(subject, () => copies(subject).length > 0, 100)
    }

    let accepted = 0
    const numbers = Array.from({ length: queued }, (_, at) => at)
    const worker = async () => {
      for (let at = numbers.pop(); at !== undefined; at = numbers.pop()) {
        if (await send(service.base, ada, `storm ${at}`)) accepted++
      }
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    let late = 0
    let slowest = 0
    let stops = 0
    for (; stops < 3 && copies("storm").length < accepted; stops++) {
      await sleep(200 + Math.random() * 400)
      const start = performance.now()
      const answered = await change(service.base, ada, "stopped")
      slowest = Math.max(slowest, answered - start)
      await sleep(2_500)
      late += begunAfter(answered)
      await change(service.base, ada, "active")
    }
    const remaining = queued - copies("storm").length
    await until("every message", () => copies("storm").length >= accepted, 300).catch(() => {})
    const subjects = new Set([...copies("storm"), ...copies("frozen")].map(({ subject }) => subject))
    const all = copies("storm").length + copies("frozen").length
    return {
      id: "stop-storm",
      ok: late === 0 && afterThaw === 0 && stops > 0 && subjects.size === accepted + rounds && all === subjects.size,
      what: `outgoing mail stopped ${stops} times under ${queued} queued messages, and ${rounds} times while the sender was suspended before DATA`,
      figures: {
        accepted,
        "queued at the last stop": remaining,
        "begun after the stop returned": late,
        "begun after a resume": afterThaw,
        "slowest answer ms": Math.round(slowest),
        arrived: subjects.size,
        "second copies": all - subjects.size,
      },
    }
  } finally {
    for (const relay of relays) relay.stop()
    await deployment.stop()
  }
}

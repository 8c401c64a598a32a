/** Kills the service while it sends and the relay while it receives. Every message must arrive. */
import { setTimeout as sleep } from "node:timers/promises"
import { deploy, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { type CrashPoint, startCrashingRelay } from "./CrashingRelay.ts"
import { send, settings, writer } from "./Sending.ts"
import { inStore } from "./Store.ts"
import { times } from "./Load.ts"

/** Runs a relay that crashes at three points of a transaction, and kills the service at random moments. */
export const killSend = async (kills = times(100)): Promise<Row> => {
  const each = 3
  // The relay does not crash while the account is created.
  let isDying = false
  const deaths: ReadonlyArray<CrashPoint> = ["before", "in", "after"]
  const relay = await startCrashingRelay(() =>
    !isDying || Math.random() < 0.6 ? "never" : deaths[Math.floor(Math.random() * deaths.length)]!,
  )
  const deployment = await deploy()
  const killed: Array<number> = []
  try {
    let service = await deployment.start([], settings(relay.port))
    const ada = await writer(service)
    isDying = true
    const accepted: Array<string> = []
    for (let kill = 0; kill < kills; kill++) {
      const sends = Array.from({ length: each }, async (_, at) => {
        const subject = `kill ${kill} message ${at}`
        if (await send(service.base, ada, subject)) accepted.push(subject)
      })
      await Promise.race(sends)
      await sleep(Math.random() * 150)
      killed.push(performance.now())
      service.signal("SIGKILL")
      await service.exited
      await Promise.allSettled(sends)
      service = await deployment.start([], settings(relay.port))
    }
    isDying = false
    // A message that is not stored will never be sent, so it counts as lost.
    const stored = new Set(
      (await inStore<{ subject: string }>(deployment, "select summary ->> 'subject' as subject from message")).map(
        ({ subject }) => subject,
      ),
    )
    const arrived = () => new Set(relay.copies.map(({ subject }) => subject))
    // After a kill, messages wait for a minute, and after crashes of the relay ever longer; this makes them due now.
    const due = () =>
      inStore(
        deployment,
        "update outbox set next_attempt_at = now() where next_attempt_at > now() and attempt_started_at is null",
      )
    await until(
      "every message",
      async () => {
        if (accepted.every((subject) => arrived().has(subject) || !stored.has(subject))) return true
        await due()
        await sleep(5_000)
        return false
      },
      480,
    ).catch(() => {})
    await until(
      "every outcome",
      async () =>
        (
          await inStore<{ n: number }>(
            deployment,
            "select count(*)::int as n from outbox where next_attempt_at is not null",
          )
        )[0]!.n === 0,
      400,
    ).catch(() => {})
    const lost = accepted.filter((subject) => !arrived().has(subject)).length
    const bySubject = Map.groupBy(relay.copies, ({ subject }) => subject)
    // A kill within these milliseconds after a 250 may have preceded its record.
    const isExcused = ({ isInTheAir, at }: { isInTheAir: boolean; at: number }) =>
      isInTheAir || killed.some((kill) => kill > at - 50 && kill - at < 2_000)
    const doubled = [...bySubject.values()].filter((copies) => copies.length > 1)
    const unexcused = doubled.filter((copies) => copies.slice(0, -1).some((copy) => !isExcused(copy))).length
    const renamed = doubled.filter((copies) => new Set(copies.map(({ messageId }) => messageId)).size > 1).length
    return {
      id: "kill-send",
      ok: lost === 0 && unexcused === 0 && renamed === 0 && accepted.length > 0,
      what: `kill -9 of the whole service within 150 ms of an acknowledgement, ${kills} times, while two of five transactions of the relay die before, in or after the 250`,
      figures: {
        accepted: accepted.length,
        lost,
        "delivered twice": doubled.length,
        "delivered twice without an excuse": unexcused,
        "under another Message-ID": renamed,
      },
    }
  } finally {
    relay.stop()
    await deployment.stop()
  }
}

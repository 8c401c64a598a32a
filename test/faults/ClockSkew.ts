/**
 * Runs three processes whose clocks differ by an hour while Identities move between them: deliveries in flight keep their
 * leases, and those of a killed process are retried when their leases end.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { call, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { type Row } from "../harness/Report.ts"
import { fakeTime } from "./ClockStep.ts"
import { manyIdentities } from "./Cluster.ts"

const hour = 3600
/** How long the receiver takes to respond, in milliseconds: shorter than the timeout of a delivery. */
const responseMillis = 6000
const count = 24

/** Environment of a process whose wall clock is off by an offset in seconds. */
const skewed = (seconds: number) => ({ ...fakeTime(), FAKETIME: `${seconds < 0 ? "" : "+"}${seconds}s` })

export const clockSkew = async (): Promise<Row> => {
  // The row starts the store, so that its clock is correct.
  const deployment = await deploy({ postgres: {} })
  const receiver = await startReceiver((response) => void setTimeout(() => response.end(), responseMillis))
  try {
    const behind = await deployment.start([], skewed(-hour))
    const { session: token } = await signUp(behind.base)
    const handles = await manyIdentities(behind.base, token, count)
    for (const handle of handles) {
      await call(behind.base, "POST", `/api/identities/${handle}/webhooks`, {
        token,
        body: { url: receiver.url, event_types: ["email.received"] },
      })
    }
    const deliver = async (node: Process, subject: string) => {
      const before = receiver.got.length
      for (const handle of handles) {
        await send(node.smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject, text: "t" })
      }
      await until(`${subject}: the first attempts`, () => receiver.got.length >= before + count, 30)
    }
    /** Number of attempts of each Event about a message with the subject. */
    const attempts = (subject: string) =>
      [
        ...Map.groupBy(
          receiver.got.filter(({ body }) => body.data.subject === subject),
          ({ headers }) => String(headers["webhook-id"]),
        ).values(),
      ].map(({ length }) => length)

    // Half of the Identities move to a process whose clock says that all leases have ended.
    await deliver(behind, "moved")
    const ahead = await deployment.start([], skewed(hour))
    const correct = await deployment.start()
    await sleep(2 * responseMillis)
    const moved = attempts("moved")

    // The leases of the killed process end by the time of the store, not an hour later.
    await deliver(correct, "killed")
    ahead.signal("SIGKILL")
    await ahead.exited
    const killedAt = Date.now()
    const isDelivered = async (handle: string) => {
      const { body: webhooks } = await call(correct.base, "GET", `/api/identities/${handle}/webhooks`, { token })
      const { body } = await call(
        correct.base,
        "GET",
        `/api/identities/${handle}/webhooks/${webhooks.webhooks[0].id}/deliveries`,
        { token },
      )
      return (
        body.deliveries.length === 2 &&
        body.deliveries.every(({ status }: { status: string }) => status === "delivered")
      )
    }
    let undelivered = handles
    await until(
      "the deliveries of the killed process",
      async () => {
        const done = await Promise.all(undelivered.map(isDelivered))
        undelivered = undelivered.filter((_, at) => done[at] !== true)
        await sleep(1000)
        return undelivered.length === 0
      },
      120,
    ).catch(() => {})
    const afterKill = attempts("killed")
    const movedTwice = moved.filter((number) => number !== 1).length
    const tooOften = afterKill.filter((number) => number > 2).length
    return {
      id: "clock-skew",
      ok: moved.length === count && movedTwice === 0 && undelivered.length === 0 && tooOften === 0,
      what: `clocks of three processes an hour behind, an hour ahead and correct, while ${count} Identities move and one process is killed`,
      figures: {
        delivered: moved.length + afterKill.length,
        "delivered twice after a move": movedTwice,
        "attempted more than twice after the kill": tooOften,
        "not delivered after the kill": undelivered.length,
        "retried after the kill": afterKill.filter((number) => number === 2).length,
        "until all were delivered, in s": ((Date.now() - killedAt) / 1000).toFixed(0),
      },
    }
  } finally {
    await deployment.stop()
    await receiver.stop()
  }
}

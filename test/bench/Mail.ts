/** The incoming mail rows: the throughput of durable acceptance, and the latency of notifications. */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { compared } from "./Calls.ts"
import { smtp } from "./Load.ts"
import { message, session } from "./Letters.ts"
import { postfixDovecot } from "./PostfixDovecot.ts"
import * as References from "./References.ts"
import { type BenchService, type Stage, subjectOf } from "./Stage.ts"
import { drift, figuresOf, inTurn, shareOf } from "./Turns.ts"

const connections = 20

const addressesOf = ({ handles }: BenchService) => handles.map((handle) => `${handle}@mail.localhost`)

/**
 * Number of messages before the measurement. V8 needs that many to compile the long path of a message, which halves its
 * CPU time; a service that runs for days is measured, not its first half minute.
 */
const compiling = 20_000
const compiled = new WeakSet<BenchService>()

const warm = async (played: BenchService | undefined): Promise<void> => {
  if (played === undefined || compiled.has(played)) return
  const drive = smtp(played.service.smtpPort, addressesOf(played), connections)
  for (let sent = 0; sent < compiling;) {
    const { done } = await drive(2)
    if (done === 0) throw new Error("no message was accepted, so nothing was measured")
    sent += done
  }
  compiled.add(played)
}

/** Maximum number of Mailboxes. Messages that wait for the same Mailbox are stored in one batch. */
const mailInto =
  (id: string, count: number) =>
  async (stage: Stage): Promise<Row> => {
    await warm(stage.ours)
    await warm(stage.earlier)
    const bare = await References.bareSmtp()
    const recipientsOf = (played: BenchService) => addressesOf(played).slice(0, count)
    return compared(stage, {
      id,
      what: `messages of 5 kB to ${count === 1 ? "one Mailbox" : "all Mailboxes"}, stored durably with verdict, index and Event, over ${connections} connections, compared with smtp-server discarding them`,
      drive: (played) => smtp(played.service.smtpPort, recipientsOf(played), connections),
      atMost: 25,
      // Each message uses both cores, so other load on the machine shows in a slice.
      rounds: 16,
      reference: {
        name: "smtp-server",
        subject: { drive: smtp(bare.port, recipientsOf(stage.ours), connections), pid: bare.pid },
        atLeast: 0.08,
      },
    }).finally(bare.stop)
  }

/** Compares the same messages in turn with Postfix and Dovecot, if installed. */
export const mailIn = async (stage: Stage): Promise<Row> => {
  const row = await mailInto("mail-in", Infinity)(stage)
  const postfix = await postfixDovecot()
  if (postfix === undefined) {
    const missing = "Postfix and Dovecot with LMTP are not installed, so messages/s are not compared with them"
    return { ...row, unreliable: [...(row.unreliable ?? []), missing] }
  }
  const recipients = addressesOf(stage.ours)
  const name = "Postfix -> Dovecot"
  try {
    const { ours, theirs } = await inTurn({
      theirs: postfix.subject(recipients, connections),
      ours: subjectOf(stage.ours, smtp(stage.ours.service.smtpPort, recipients, connections)),
    })
    return {
      ...row,
      ok: row.ok && ours.wrong === 0 && theirs.wrong === 0 && theirs.done > 0,
      unreliable: [...(row.unreliable ?? []), ...drift({ rate: { [name]: theirs } })],
      goals: [...(row.goals ?? []), { what: `messages/s to ${name}`, value: shareOf(ours, theirs), atLeast: 2.5 }],
      figures: {
        ...row.figures,
        "ours beside it/s": Math.round(ours.perSecond.median),
        ...figuresOf(name, theirs),
        [`${name} CPU us`]: Math.round(postfix.cpu()),
      },
    }
  } finally {
    postfix.stop()
  }
}
export const mailInOne = mailInto("mail-in-1", 1)

const crowd = 1_000

/** Uses so many Mailboxes that waiting messages rarely share one; all actors are loaded first. */
export const mailInCrowd = async (stage: Stage): Promise<Row> => {
  const { service, key } = stage.ours
  const made: Array<string> = [...stage.ours.handles]
  while (made.length < crowd) {
    const some = Array.from({ length: Math.min(20, crowd - made.length) }, () => makeIdentity(service.base, key))
    made.push(...(await Promise.all(some)).map(({ handle }) => handle))
  }
  const recipients = made.map((handle) => `${handle}@mail.localhost`)
  const drive = smtp(service.smtpPort, recipients, connections)
  for (let woken = 0; woken < crowd;) woken += (await drive(2)).done
  const few = smtp(service.smtpPort, recipients.slice(0, 10), connections)
  const { ours, theirs } = await inTurn({ theirs: subjectOf(stage.ours, few), ours: subjectOf(stage.ours, drive) })
  return {
    id: "mail-in-1000",
    ok: ours.wrong === 0 && theirs.wrong === 0,
    what: `messages of 5 kB to ${crowd} Mailboxes over ${connections} connections, compared with ten Mailboxes`,
    unreliable: drift({ rate: { "ten Mailboxes": theirs } }),
    goals: [],
    figures: { ...figuresOf("ours", ours), ...figuresOf("ten Mailboxes", theirs) },
  }
}

export const mailWake = async (): Promise<Row> => {
  const deployment = await deploy()
  const arrivals: Array<number> = []
  const receiver = await startReceiver((response) => {
    arrivals.push(performance.now())
    response.end()
  })
  try {
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner.session)
    await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: owner.session,
      body: { url: receiver.url, event_types: ["email.received"] },
    })
    const one = await session(service.smtpPort)
    const waits: Array<number> = []
    for (let i = 0; i < 220; i++) {
      await one.send(`${handle}@mail.localhost`, message(`${handle}@mail.localhost`))
      const accepted = performance.now()
      await until("the delivery", () => arrivals.length > i)
      if (i >= 20) waits.push(Math.max(0, arrivals[i]! - accepted))
    }
    one.close()
    return {
      id: "mail-wake",
      ok: true,
      what: "from the SMTP 250 to the request at the Webhook, one message after the other",
      goals: [
        { what: "p50 ms", value: round(percentile(waits, 0.5)), atMost: 5 },
        { what: "p99 ms", value: round(percentile(waits, 0.99)), atMost: 30 },
      ],
      figures: { messages: waits.length },
    }
  } finally {
    await receiver.stop()
    await deployment.stop()
  }
}

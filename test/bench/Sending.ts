/** The outgoing mail rows: the throughput of durable acceptance and of delivery to a relay. */
import { createTransport } from "nodemailer"
import { inStore, persistentQuery } from "../faults/Store.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { message } from "./Letters.ts"
import { work } from "./Load.ts"
import * as References from "./References.ts"
import { checkout } from "./Stage.ts"
import * as Statements from "./Statements.ts"
import { drift, figuresOf, inTurn, type Measured, shareOf, type Subject } from "./Turns.ts"

const to = "grace@example.org"
const identities = 16
/** Messages per Identity in a slice of deliveries. */
const each = 20
/** Number of concurrent requests, and of connections of the reference sender. */
const width = 10

/** Makes the latest messages due again, as after a busy moment; `Overdue` then wakes the actors. */
const again = `with again as (
    update outbox o set next_attempt_at = now() - interval '1 minute', attempts = 0
    from (select id, row_number() over (partition by identity_id order by created_at desc) as place from outbox) newest
    where newest.id = o.id and newest.place <= ${each} returning o.id, o.message_id
  ),
  recipients as (update outgoing_recipient r set status = 'queued' from again where r.outbox_id = again.id),
  messages as (update outgoing g set status = 'queued', rows_left = 1 from again where again.message_id = g.message_id)
  select count(*)::int as n from again`

/** Starts a service that sends to the relay, and returns what the rows measure. */
export const sender = async (relayPort: number, body: object, ending: Array<() => unknown>, tree?: string) => {
  const deployment = await deploy({ postgres: Statements.settings, ...(tree === undefined ? {} : { checkout: tree }) })
  ending.push(deployment.stop)
  await Statements.prepare(deployment)
  const service = await deployment.start([], {
    SVC_SMTP_RELAY_URL: `smtp://127.0.0.1:${relayPort}`,
    SVC_LIMIT_MAIL_HOURLY: "100000000",
  })
  const { session: token } = await signUp(service.base)
  const made = await Promise.all(Array.from({ length: identities }, () => makeIdentity(service.base, token)))
  for (const { handle } of made) {
    await call(service.base, "POST", `/api/identities/${handle}/allowed-recipients`, { token, body: { address: to } })
  }
  const store = await persistentQuery(deployment)
  ending.push(store.close)
  let next = 0
  const accept = async () => {
    const { handle } = made[next++ % identities]!
    const { status } = await call(service.base, "POST", `/api/identities/${handle}/messages/send`, { token, body })
    if (status !== 202) throw new Error(`send answered ${status}`)
  }
  // Ensures that enough messages exist to be made due.
  for (let i = 0; i < each; i++) await Promise.all(made.map(accept))
  const waiting = async () =>
    (await store.look<{ n: number }>("select count(*)::int as n from outbox where next_attempt_at is not null"))[0]!.n
  // Messages that the relay deferred on a busy machine are retried after five minutes.
  const drained = () =>
    until("the outbox to be empty", async () => (await waiting()) === 0, 480).catch(async (error: Error) => {
      const remaining = await inStore<{ attempts: number; n: number; reply: string | null }>(
        deployment,
        `select o.attempts, count(*)::int as n, max(r.reply ->> 'text') as reply
         from outbox o join outgoing_recipient r on r.outbox_id = o.id where o.next_attempt_at is not null group by 1`,
      )
      throw new Error(`${error.message}: ${JSON.stringify(remaining)}`)
    })
  const pids = { pid: service.child.pid!, postmaster: deployment.postgres() }

  // Accepted messages are delivered at the same time; the next slice begins when all of them were delivered.
  const accepted: Subject = { ...pids, prepare: drained, drive: work(width, accept) }

  // A slice lasts from the first delivery to the last record.
  let queued = 0
  const delivered: Subject = {
    ...pids,
    prepare: async () => {
      await drained()
      const [made] = await store.look<{ n: number }>(again)
      queued = made!.n
    },
    drive: async () => {
      await until("the first to leave", async () => (await waiting()) < queued)
      const counted = queued - (await waiting())
      const start = performance.now()
      await drained()
      const seconds = (performance.now() - start) / 1000
      return {
        done: queued,
        wrong: 0,
        seconds: (seconds * queued) / Math.max(1, queued - counted),
        p50: Number.NaN,
        p99: Number.NaN,
      }
    },
  }
  return { deployment, service, accepted, delivered }
}

export const send = (against: string | undefined) => async (): Promise<Row> => {
  const ending: Array<() => unknown> = []
  const relay = await References.bareSmtp()
  ending.push(relay.stop)
  try {
    const body = { to: [to], subject: "a letter of five kilobytes", text: message(to).slice(-4_000) }
    const ours = await sender(relay.port, body, ending)
    const bare = createTransport({ host: "127.0.0.1", port: relay.port, pool: true, maxConnections: width })
    ending.push(() => bare.close())
    const letter = { from: "ada@mail.localhost", ...body }
    const subjects: Record<string, Subject> = {
      bare: { drive: work(width, () => bare.sendMail(letter)) },
      accepted: ours.accepted,
      delivered: ours.delivered,
    }
    if (against !== undefined) {
      const { tree, remove } = checkout(against)
      ending.unshift(remove)
      const earlier = await sender(relay.port, body, ending, tree)
      subjects["earlier accepted"] = earlier.accepted
      subjects["earlier delivered"] = earlier.delivered
    }
    const got = await inTurn(subjects, { rounds: 4 })
    const of = (name: string): Measured => got[name]!
    return {
      id: "send",
      ok: true,
      what: `messages of 4 kB from ${identities} Identities: accepted over ${width} connections during delivery; delivered to a sink, signed twice and recorded, compared with nodemailer to the same`,
      unreliable: drift({ rate: { nodemailer: of("bare") } }),
      goals: [{ what: "delivered/s to nodemailer", value: shareOf(of("delivered"), of("bare")), atLeast: 0.3 }],
      figures: Object.assign(
        {},
        ...Object.keys(subjects).map((name) => figuresOf(name === "bare" ? "nodemailer" : name, of(name))),
      ),
      details: [
        ...(await Statements.mostExpensive(ours.deployment, ours.accepted)),
        ...(await Statements.mostExpensive(ours.deployment, ours.delivered)),
      ],
    }
  } finally {
    for (const end of ending.toReversed()) await end()
  }
}

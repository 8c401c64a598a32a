/** Mail faults: a crash right after a 250, and malicious senders. */
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { message, session } from "../bench/Letters.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { converse, send, upToData } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { deploy, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { times } from "./Load.ts"

/** Kills the service 0 to 20 ms after a 250. Every accepted message must be listed and reach the Webhook. */
export const killMail = async (): Promise<Row> => {
  const deployment = await deploy()
  const receiver = await startReceiver()
  const kills = times(200)
  const perKill = 1
  try {
    let service = await deployment.start()
    const owner = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner.session)
    const to = `${handle}@mail.localhost`
    await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: owner.session,
      body: { url: receiver.url, event_types: ["email.received"] },
    })
    const accepted: Array<string> = []
    for (let kill = 0; kill < kills; kill++) {
      const one = await session(service.smtpPort)
      for (let i = 0; i < perKill; i++) {
        const subject = `kill ${kill} message ${i}`
        await one.send(to, message(to).replace(/Subject: .*\r\n/, `Subject: ${subject}\r\n`))
        accepted.push(subject)
      }
      await sleep(Math.random() * 20)
      service.signal("SIGKILL")
      await service.exited
      one.close()
      service = await deployment.start()
    }
    const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages?limit=200`, {
      token: owner.session,
    })
    const listed = body.messages.map(({ subject }: { subject: string }) => subject) as ReadonlyArray<string>
    const delivered = () => new Set(receiver.got.map((one) => one.body.data.subject as string))
    // An attempt that was interrupted by a kill keeps its lease for a minute, and waits five more after a second kill.
    // A message that is not stored will never be delivered, so it counts as lost.
    const stored = new Set(listed)
    const isOver = () => accepted.every((subject) => delivered().has(subject) || !stored.has(subject))
    await until("every delivery", isOver, 420).catch(() => {})
    const lost = accepted.filter((subject) => !listed.includes(subject)).length
    const untold = accepted.filter((subject) => !delivered().has(subject)).length
    return {
      id: "kill-mail",
      ok: lost === 0 && untold === 0 && listed.length === accepted.length,
      what: `kill -9 of the whole service 0 to 20 ms after the last of ${perKill} messages was accepted, ${kills} times`,
      figures: {
        accepted: accepted.length,
        lost,
        doubled: listed.length - new Set(listed).size,
        "never delivered": untold,
        "delivered more than once": receiver.got.length - delivered().size,
      },
    }
  } finally {
    await receiver.stop()
    await deployment.stop()
  }
}

/** Opens thousands of idle connections, with a slow sender and a flood of dots. Regular mail must continue. */
export const hostileSmtp = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner.session)
    const to = `${handle}@mail.localhost`
    const honest = async () => {
      const start = performance.now()
      // Connects from another loopback address, as a different sender.
      await send(service.smtpPort, { from: "a@example.org", to, subject: "honest", text: "x" }, "127.0.0.2")
      return performance.now() - start
    }
    await honest()
    const refused: Array<string> = []
    const sockets = Array.from({ length: 1000 }, () => {
      const socket = connect(service.smtpPort, "127.0.0.1")
      socket.on("error", () => {})
      socket.on("data", (chunk) => chunk.toString().startsWith("421") && refused.push("421"))
      return socket
    })
    await until("the refusals", () => refused.length >= 800, 20).catch(() => {})
    const crowded = await honest()
    for (const socket of sockets) socket.destroy()
    await sleep(500)
    const dots = converse(service.smtpPort, [
      ...upToData(to),
      `Subject: dots\r\n\r\n${"..\r\n".repeat(2_000_000)}.\r\n`,
      "QUIT\r\n",
    ])
    const during = await honest()
    const [reply] = (await dots).slice(5)
    const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages`, { token: owner.session })
    return {
      id: "hostile-smtp",
      // A single client may have a hundred connections.
      ok: refused.length >= 800 && body.messages.length === 3 && (reply ?? "").startsWith("55"),
      what: "1,000 idle connections of one client, then 8 MB of dots, beside a regular sender",
      figures: {
        "connections refused": refused.length,
        "honest ms, crowded": Math.round(crowded),
        "honest ms, dots": Math.round(during),
        "reply to dots": reply ?? "nothing",
      },
    }
  } finally {
    await deployment.stop()
  }
}

/** Mail rows: how much is accepted and durable, and how soon a receiver knows. */
import { connect, type Socket } from "node:net"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { rate } from "./Throughput.ts"

/** One SMTP connection that sends message after message. */
export const session = async (port: number) => {
  const socket: Socket = connect(port, "127.0.0.1")
  let waiting: ((reply: string) => void) | undefined
  let text = ""
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1")
    if (!/^\d{3} .*\r\n$/m.test(text)) return
    const reply = text
    text = ""
    waiting?.(reply)
  })
  const say = (line: string) => {
    const reply = new Promise<string>((resolve) => (waiting = resolve))
    socket.write(line)
    return reply
  }
  await new Promise<string>((resolve) => (waiting = resolve))
  await say("EHLO bench.example.org\r\n")
  return {
    send: async (to: string, data: string) => {
      await say("MAIL FROM:<bench@example.org>\r\n")
      await say(`RCPT TO:<${to}>\r\n`)
      await say("DATA\r\n")
      const reply = await say(`${data}\r\n.\r\n`)
      if (!reply.startsWith("250")) throw new Error(reply)
    },
    close: () => socket.destroy(),
  }
}

let number = 0
export const message = (to: string) =>
  `From: Bench <bench@example.org>\r\nTo: ${to}\r\nSubject: message ${number++}\r\nMessage-ID: <${Math.random().toString(36)}@example.org>\r\n\r\n${"A line of text of a length that people write.\r\n".repeat(105)}end`

/** A process of its own with the library's server, which reads and discards. */
const bareSmtp = async () => {
  const child = spawn(
    process.execPath,
    [
      "-e",
      `
    const { SMTPServer } = require("smtp-server")
    const s = new SMTPServer({ authOptional: true, disabledCommands: ["AUTH", "STARTTLS"], disableReverseLookup: true, logger: false,
      onData(stream, session, done) { stream.resume(); stream.on("end", () => done()) } })
    s.listen(0, "127.0.0.1", () => console.log(s.server.address().port))`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const [port] = (await once(child.stdout, "data")) as [Buffer]
  return { port: Number(port.toString()), stop: () => child.kill() }
}

/** Twenty senders, each of which goes through the recipients from a place of its own. */
const flood = async (port: number, recipients: ReadonlyArray<string>) => {
  const sessions = await Promise.all(Array.from({ length: 20 }, () => session(port)))
  const places = sessions.map((_, index) => index)
  const measured = await rate(20, 4, (worker) => {
    const to = recipients[places[worker]! % recipients.length]!
    places[worker]! += sessions.length
    return sessions[worker]!.send(to, message(to))
  })
  for (const one of sessions) one.close()
  return measured
}

/** Mailboxes made forty at a time. */
const mailboxes = async (base: string, token: string, count: number) => {
  const made: Array<string> = []
  while (made.length < count) {
    const some = Array.from({ length: Math.min(40, count - made.length) }, () => makeIdentity(base, token))
    made.push(...(await Promise.all(some)).map(({ handle }) => `${handle}@mail.localhost`))
  }
  return made
}

/** 20 senders into so many Mailboxes, against a server that reads and discards. */
const mailInto = async (id: string, count: number): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const recipients = await mailboxes(service.base, owner.session, count)
    const bare = await bareSmtp()
    const reference = await flood(bare.port, recipients)
    bare.stop()
    const ours = await flood(service.smtpPort, recipients)
    return {
      id,
      ok: true,
      what: `messages/s of 5 kB accepted, durable, judged, with Event, 20 connections into ${count} Mailbox${count === 1 ? "" : "es"}, against smtp-server discarding`,
      figures: {
        ratio: round(ours.perSecond / reference.perSecond, 3),
        "ours/s": ours.perSecond,
        "reference/s": reference.perSecond,
        "p50 ms": ours.p50,
        "p99 ms": ours.p99,
      },
    }
  } finally {
    await deployment.stop()
  }
}

export const mailIn = () => mailInto("mail-in", 20)
export const mailInOne = () => mailInto("mail-in-1", 1)
export const mailInMany = () => mailInto("mail-in-1000", 1_000)

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
      what: "SMTP 250 to the webhook receiver's socket",
      figures: { "p50 ms": round(percentile(waits, 0.5)), "p99 ms": round(percentile(waits, 0.99)) },
    }
  } finally {
    await receiver.stop()
    await deployment.stop()
  }
}

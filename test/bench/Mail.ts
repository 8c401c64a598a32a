/** Mail rows: how much is accepted and durable, and how soon a receiver knows. */
import { connect, type Socket } from "node:net"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { compared } from "./Calls.ts"
import { smtp } from "./Load.ts"
import { letter } from "./LoadOrder.ts"
import * as References from "./References.ts"
import type { Played, Stage } from "./Stage.ts"

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
export const message = (to: string) => letter(to, String(number++))

export const mailIn = async (stage: Stage): Promise<Row> => {
  const bare = await References.bareSmtp()
  const at = 20
  const recipientsOf = ({ handles }: Played) => handles.map((handle) => `${handle}@mail.localhost`)
  return compared(stage, {
    id: "mail-in",
    what: `letters of 5 kB, accepted, durable, judged, indexed, with their Event, ${at} connections, beside smtp-server discarding`,
    drive: (played) => smtp(played.service.smtpPort, recipientsOf(played), at),
    atMost: 25,
    reference: {
      name: "smtp-server",
      subject: { drive: smtp(bare.port, recipientsOf(stage.ours), at), pid: bare.pid },
      atLeast: 0.08,
    },
  }).finally(bare.stop)
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
      what: "SMTP 250 to the webhook receiver's socket, one letter after the other",
      goals: [
        { what: "p50 ms", value: round(percentile(waits, 0.5)), atMost: 5 },
        { what: "p99 ms", value: round(percentile(waits, 0.99)), atMost: 30 },
      ],
      figures: { letters: waits.length },
    }
  } finally {
    await receiver.stop()
    await deployment.stop()
  }
}

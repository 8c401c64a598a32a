/** Malicious and broken Webhook receivers, which must not delay a working receiver. */
import { createServer } from "node:net"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"

export const webhookStorm = async (): Promise<Row> => {
  const deployment = await deploy()
  const sent = new Map<string, number>()
  const waits: Array<number> = []
  const good = await startReceiver((response, got) => {
    waits.push(performance.now() - (sent.get(got.body.data.subject) ?? 0))
    response.end()
  })
  const gigabyte = Buffer.alloc(1024 * 1024)
  const bad = [
    await startReceiver(() => {}),
    await startReceiver((response) => void setInterval(() => response.write("."), 200).unref()),
    await startReceiver((response) => response.writeHead(302, { location: good.url }).end()),
    await startReceiver((response) => response.writeHead(500).end()),
    await startReceiver((response) => {
      const pour = () => {
        while (response.writable && response.write(gigabyte));
      }
      response.on("drain", pour)
      pour()
    }),
  ]
  const closing = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => closing.listen(0, "127.0.0.1", resolve))
  const address = closing.address()
  const targets = [
    ...bad.map(({ url }) => url),
    `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/`,
  ]
  try {
    const service = await deployment.start()
    const owner = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner.session)
    for (const url of [...targets, good.url]) {
      await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
        token: owner.session,
        body: { url, event_types: ["email.received"] },
      })
    }
    const before = process.memoryUsage().rss
    for (let i = 0; i < 50; i++) {
      sent.set(String(i), performance.now())
      await send(service.smtpPort, {
        from: "a@example.org",
        to: `${handle}@mail.localhost`,
        subject: String(i),
        text: "x",
      })
    }
    await until("the good receiver's fifty", () => good.got.length >= 50, 30).catch(() => {})
    return {
      id: "webhook-storm",
      ok: good.got.length === 50,
      what: "a working receiver beside receivers that hang, respond slowly, redirect, return 500, respond endlessly, and disconnect",
      figures: {
        delivered: good.got.length,
        "p50 ms from the sender's DATA": round(percentile(waits, 0.5)),
        "p99 ms": round(percentile(waits, 0.99)),
        "memory grown MB": Math.round((process.memoryUsage().rss - before) / 1e6),
      },
    }
  } finally {
    closing.close()
    await Promise.all([good, ...bad].map(({ stop }) => stop()))
    await deployment.stop()
  }
}

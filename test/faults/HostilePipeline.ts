/**
 * Clients without a credential that send their requests in advance, over a hundred connections at once: for how long the
 * event loop is held by it ({@link module:TurnMeter}), and whether the health check goes on meanwhile.
 */
import { once } from "node:events"
import { connect } from "node:net"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { deploy, type Process } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { waitsOf } from "./Waits.ts"

const connections = 100
/**
 * Milliseconds on a CPU that the event loop may be held for at once. Node parses all that one read brought: 9,900 heads are
 * about 70 ms. Served in the turns in which they were parsed they took 900.
 */
const heldAtMost = 100
const rounds = 3

/** What each connection sends at once, and where. The last of its lines ends the connection. */
const attacks: Readonly<
  Record<string, { readonly port: (service: Process) => number; readonly text: string; readonly from: string }>
> = {
  "99 GET of an unknown path": {
    port: ({ base }) => Number(new URL(base).port),
    text: "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(99),
    from: "127.0.0.3",
  },
  "16 GET of an unknown path": {
    port: ({ base }) => Number(new URL(base).port),
    text: `${"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(15)}GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    from: "127.0.0.4",
  },
  "2,000 NOOP of SMTP": {
    port: ({ smtpPort }) => smtpPort,
    text: `${"NOOP\r\n".repeat(2_000)}QUIT\r\n`,
    from: "127.0.0.5",
  },
  "2,000 NOOP of IMAP": {
    port: ({ imapPort }) => imapPort,
    text: `${"a NOOP\r\n".repeat(2_000)}b LOGOUT\r\n`,
    from: "127.0.0.6",
  },
}

/**
 * Opens all connections and writes to them while the service is stopped, so that it finds everything in one turn. Resolves
 * when the connections have ended, at most two seconds later.
 */
const strike = async (service: Process, port: number, text: string, localAddress: string) => {
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ port, host: "127.0.0.1", localAddress })
      socket.on("error", () => {})
      await once(socket, "connect")
      socket.resume()
      return socket
    }),
  )
  const ended = Promise.all(sockets.map((socket) => once(socket, "close")))
  service.signal("SIGSTOP")
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.write(text, resolve))))
  service.signal("SIGCONT")
  await Promise.race([ended, sleep(2_000)])
  for (const socket of sockets) socket.destroy()
}

export const hostilePipeline = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const service = await deployment.start([], {
      NODE_OPTIONS: `--import=${path.join(import.meta.dirname, "TurnMeter.ts")}`,
    })
    const heldSince = (from: number): number => {
      const said = service
        .output()
        .slice(from)
        .matchAll(/^held ([\d.]+) ms$/gm)
      return Math.max(0, ...[...said].map(([, held]) => Number(held)))
    }
    const figures: Record<string, number> = {}
    let worst = 0
    let health = 0
    for (const [name, { port, text, from }] of Object.entries(attacks)) {
      const held: Array<number> = []
      for (let n = 0; n <= rounds; n++) {
        const start = service.output().length
        const until = performance.now() + 2_000
        const [waits] = await Promise.all([
          waitsOf(async () => (await fetch(`${service.base}/api/healthz`)).arrayBuffer(), until),
          strike(service, port(service), text, from),
        ])
        await sleep(600)
        // The first round compiles.
        if (n === 0) continue
        held.push(heldSince(start))
        health = Math.max(health, percentile(waits, 0.99))
      }
      figures[`held ms, ${name}`] = round(percentile(held, 0.5))
      worst = Math.max(worst, percentile(held, 0.5))
    }
    return {
      id: "hostile-pipeline",
      ok: worst <= heldAtMost,
      what: `${connections} connections that send in advance, without a credential; the event loop may be held for ${heldAtMost} ms of CPU`,
      figures: { "worst ms held": round(worst), "health p99 ms": round(health), ...figures },
    }
  } finally {
    await deployment.stop()
  }
}

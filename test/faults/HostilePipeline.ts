/**
 * Pipelines requests over a hundred connections and measures how long the event loop is blocked ({@link
 * module:TurnMeter}) and whether the health check still responds. There is a row per protocol that accepts pipelined
 * commands; only tunnel links and the MCP server need a credential.
 */
import { once } from "node:events"
import { connect } from "node:net"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { startOrigin } from "../bench/TunnelReferences.ts"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { turnsIn, waitsOf } from "./Waits.ts"

const connections = 100
/**
 * Maximum CPU time in milliseconds for which the event loop may be blocked. Node parses everything that one read
 * returned: 9,900 heads take 70 to 170 ms. They took 900 when they were also served in the turns in which they were
 * parsed.
 */
const heldAtMost = 200
const rounds = 3

interface Attack {
  readonly port: (service: Process) => number
  readonly text: string
  readonly from: string
  /** Whether the server speaks first. */
  readonly greets?: boolean
}

const toolCall = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "svc_whoami", arguments: {} } }
const mcpOf = (body: string, key: string) =>
  `POST /api/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const batchOf = (count: number, key: string) =>
  mcpOf(JSON.stringify(Array.from({ length: count }, () => toolCall)), key)

/**
 * Returns what each connection sends in one write, and where to. The last line ends the connection if the protocol
 * supports that.
 */
const attacksOn = (handle: string, key: string): Readonly<Record<string, Attack>> => ({
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
    greets: true,
  },
  "2,000 NOOP of IMAP": {
    port: ({ imapPort }) => imapPort,
    text: `${"a NOOP\r\n".repeat(2_000)}b LOGOUT\r\n`,
    from: "127.0.0.6",
    greets: true,
  },
  "1,000 GET through a Tunnel": {
    port: ({ edgePort }) => edgePort,
    text: `${`GET / HTTP/1.1\r\nHost: ${handle}.tunnel.localhost\r\n\r\n`.repeat(999)}GET / HTTP/1.1\r\nHost: ${handle}.tunnel.localhost\r\nConnection: close\r\n\r\n`,
    from: "127.0.0.7",
  },
  "4,000 PING of a Tunnel's link": {
    port: ({ edgePort }) => edgePort,
    // Frame type 6, 8 bytes, stream 0.
    text: `GET /v1/tunnel HTTP/1.1\r\nHost: connect.tunnel.localhost\r\nConnection: Upgrade\r\nUpgrade: idt/1\r\nAuthorization: Bearer ${key}\r\nsvc-tunnel-handle: ${handle}\r\n\r\n${`\x06\0\0\x08\0\0\0\0${"\0".repeat(8)}`.repeat(4_000)}`,
    from: "127.0.0.8",
  },
  "a batch of 2,000 tool calls": {
    port: ({ base }) => Number(new URL(base).port),
    text: batchOf(2_000, key),
    from: "127.0.0.9",
  },
  "16 tool calls": {
    port: ({ base }) => Number(new URL(base).port),
    text: mcpOf(JSON.stringify(toolCall), key).repeat(16),
    from: "127.0.0.10",
  },
})

/** The health check; it responds after the turn of the event loop that read what was sent before it. */
const checkHealth = async ({ base }: Process) => (await fetch(`${base}/api/healthz`)).arrayBuffer()

/** Waits for the meter's next report, which includes every turn before it. */
const nextReport = async (service: Process) => {
  const start = service.output().length
  await until("a report of the meter", () => turnsIn(service.output().slice(start)).length > 0, 60)
}

/**
 * Opens all connections and writes to them while the service is suspended, so that it reads everything in one turn.
 * Returns the bytes of the responses when the connections have ended, or after two seconds if the service is responsive
 * by then.
 */
const strike = async (service: Process, { port, text, from: localAddress, greets }: Attack): Promise<number> => {
  let bytes = 0
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect({ port: port(service), host: "127.0.0.1", localAddress })
      socket.on("error", () => {})
      await once(socket, "connect")
      // SMTP rejects clients that send before the greeting.
      if (greets) await once(socket, "data")
      socket.on("data", (chunk: Buffer) => (bytes += chunk.length))
      return socket
    }),
  )
  const ended = Promise.all(sockets.map((socket) => once(socket, "close")))
  service.signal("SIGSTOP")
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.write(text, "latin1", resolve))))
  service.signal("SIGCONT")
  await Promise.race([ended, sleep(2_000)])
  await checkHealth(service)
  for (const socket of sockets) socket.destroy()
  return bytes
}

export const hostilePipeline = async (): Promise<Row> => {
  const deployment = await deploy()
  const origin = await startOrigin(1024)
  const closing: Array<() => Promise<unknown>> = []
  try {
    const service = await deployment.start([], {
      NODE_OPTIONS: `--import=${path.join(import.meta.dirname, "TurnMeter.ts")}`,
    })
    const { session } = await signUp(service.base)
    const { handle, secrets } = await makeIdentity(service.base, session)
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: () => `http://connect.tunnel.localhost:${service.edgePort}`,
      port: origin.port,
    })
    closing.push(() => tunnel.close())
    await tunnel.ready
    // Uses a separate Tunnel, so that the attack's links replace no other.
    const other = await makeIdentity(service.base, session)
    const attacks = {
      ...attacksOn(other.handle, other.secrets.identity_key),
      "1,000 GET through a Tunnel": attacksOn(handle, "")["1,000 GET through a Tunnel"]!,
    }
    const heldSince = (from: number): number => Math.max(0, ...turnsIn(service.output().slice(from)))
    const figures: Record<string, number> = {}
    const silent: Array<string> = []
    let worst = 0
    let health = 0
    for (const [name, attack] of Object.entries(attacks)) {
      const held: Array<number> = []
      let answered = Infinity
      for (let n = 0; n <= rounds; n++) {
        const start = service.output().length
        const end = performance.now() + 2_000
        const [waits, bytes] = await Promise.all([waitsOf(() => checkHealth(service), end), strike(service, attack)])
        answered = Math.min(answered, bytes)
        await nextReport(service)
        // The first round compiles the code.
        if (n === 0) continue
        held.push(heldSince(start))
        health = Math.max(health, percentile(waits, 0.99))
      }
      if (answered === 0) silent.push(name)
      figures[`held ms, ${name}`] = round(percentile(held, 0.5))
      worst = Math.max(worst, percentile(held, 0.5))
    }
    return {
      id: "hostile-pipeline",
      // An attack without any response did not arrive.
      ok: worst <= heldAtMost && silent.length === 0,
      what: `${connections} connections with pipelined requests; limit for blocking the event loop: ${heldAtMost} ms of CPU`,
      figures: { "longest block ms": round(worst), "health p99 ms": round(health), ...figures },
    }
  } finally {
    for (const close of closing) await close()
    origin.stop()
    await deployment.stop()
  }
}

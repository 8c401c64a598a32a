/**
 * Malicious peers of a tunnel: readers that stall, agents that violate the protocol, and clients that smuggle requests.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { startOrigin } from "../bench/TunnelReferences.ts"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { get, load } from "./TunnelLoad.ts"

/** Returns the resident memory of a process in MB, or NaN if it has ended. */
const memoryOf = ({ child }: Process) => {
  try {
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024)
  } catch {
    return Number.NaN
  }
}

/** Starts the agent as a separate process. */
const startAgent = async (port: number, api: Process, edge: Process, key: string) => {
  const child = spawn(
    process.execPath,
    [
      new URL("../../packages/cli/src/main.ts", import.meta.url).pathname,
      "tunnel",
      String(port),
      "--api",
      api.base,
      "--edge",
      `http://connect.tunnel.localhost:${edge.edgePort}`,
      "--quiet",
    ],
    { env: { PATH: process.env["PATH"], SVC_KEY: key }, stdio: ["ignore", "pipe", "inherit"] },
  )
  await once(child.stdout, "data")
  child.stdout.resume()
  return () => child.kill()
}

/** Runs one edge and a regular agent next to the malicious peer. */
const beside = async (
  id: string,
  what: string,
  settleMillis: number,
  disturb: (at: {
    readonly edge: Process
    readonly handle: string
    readonly strangerKey: string
    readonly stranger: string
  }) => Promise<Readonly<Record<string, number>>>,
): Promise<Row> => {
  const deployment = await deploy()
  const origin = await startOrigin(64 * 1024 * 1024)
  try {
    const api = await deployment.start(["api", "actors"])
    const edge = await deployment.start(["edge"])
    const { session } = await signUp(api.base)
    const { handle, secrets } = await makeIdentity(api.base, session)
    const other = await makeIdentity(api.base, (await signUp(api.base)).session)
    const stop = await startAgent(origin.port, api, edge, secrets.identity_key)
    await until("the tunnel", async () => (await get(edge.edgePort, handle)) === 200)
    const before = await load(edge.edgePort, handle, 3_000)
    const disturbed = disturb({ edge, handle, strangerKey: other.secrets.identity_key, stranger: other.handle })
    await sleep(settleMillis)
    const [seen, figures] = await Promise.all([load(edge.edgePort, handle, 8_000), disturbed])
    const memory = memoryOf(edge)
    const after = await load(edge.edgePort, handle, 2_000)
    stop()
    return {
      id,
      ok:
        edge.child.exitCode === null &&
        seen.failed + after.failed === 0 &&
        seen.longestGapMillis < 1_000 &&
        memory < 1_024,
      what,
      figures: {
        answered: seen.answered,
        failed: seen.failed,
        "p99 ms": round(percentile(seen.waits, 0.99)),
        "p99 ms before": round(percentile(before.waits, 0.99)),
        "longest gap ms": seen.longestGapMillis,
        "edge MB": memory,
        ...figures,
      },
    }
  } finally {
    origin.stop()
    await deployment.stop()
  }
}

export const stalledReaders = () =>
  beside(
    "stalled-readers",
    "200 clients of the same tunnel ask for much and read nothing, beside honest ones",
    // Waits until the kernel's buffers are full, which prevents the origin itself from responding.
    8_000,
    async ({ edge, handle }) => {
      const sockets = Array.from({ length: 200 }, () => {
        const socket = connect(edge.edgePort, "127.0.0.1", () => {
          socket.write(`GET /large HTTP/1.1\r\nHost: ${handle}.tunnel.localhost\r\n\r\n`)
          socket.pause()
        })
        return socket.on("error", () => {})
      })
      await sleep(16_000)
      for (const socket of sockets) socket.destroy()
      return {}
    },
  )

const frame = (type: number, stream: number, payload: Buffer | number = 0) => {
  const bytes = typeof payload === "number" ? Buffer.alloc(payload) : payload
  const head = Buffer.alloc(8)
  head[0] = type
  head.writeUIntBE(Math.min(bytes.length, 0xffffff), 1, 3)
  head.writeUInt32BE(stream, 4)
  return Buffer.concat([head, bytes])
}
const times = (count: number, bytes: (n: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, n) => bytes(n)))
const open = Buffer.from([1, 0, 0x7b, 0x7d])

/** Messages of a malicious agent that holds a link. */
const evil: ReadonlyArray<(name: string) => Buffer> = [
  () => frame(17, 0),
  () => frame(2, 77, 100),
  () => frame(1, 1, open),
  () => frame(0, 0, Buffer.from("[1,2")),
  () => frame(0, 0, 16 * 1024 + 1),
  () => frame(2, 1, 64 * 1024 + 1),
  () => frame(5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff])),
  () => frame(4, 0x7fff_ffff, 2),
  () => randomBytes(100_000),
  // Floods: unrequested streams that are reset immediately, pings whose responses are not read, statuses.
  () => times(50_000, (n) => Buffer.concat([frame(1, 2 * n + 2, open), frame(4, 2 * n + 2, 2)])),
  () => times(200_000, () => frame(6, 0, 8)),
  () => times(20_000, () => frame(9, 0, Buffer.from('{"local":"down"}'))),
]

/** Requests of a malicious client: heads that parsers interpret differently, or that never end. */
const smuggling = (host: string): ReadonlyArray<string> => {
  const smuggled = `GET /smuggled HTTP/1.1\r\nHost: ${host}\r\n\r\n`
  const post = `POST / HTTP/1.1\r\nHost: ${host}\r\n`
  return [
    `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `${post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    `${post}Transfer-Encoding:\x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    `${post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    `${post}Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    `${post}Content-Length: 0\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `${post}Content-Length: 6, 0\r\n\r\n${smuggled}`,
    `${post}Content-Length: 0x10\r\n\r\n${smuggled}`,
    `${post} Content-Length: 50\r\n\r\n${smuggled}`,
    `${post}X: y\r\r\nContent-Length: 50\r\n\r\n${smuggled}`,
    `${post}Connection: close, content-length\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `${post}Transfer-Encoding: chunked\r\n\r\n0;\nGET /smuggled HTTP/1.1\r\n\r\n`,
    `${post}Transfer-Encoding: chunked\r\n\r\n00000000000000000\r\n\r\n${smuggled}`,
    `${post}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${smuggled}`,
    `GET /\x00 HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: other.example\r\n\r\n`,
    `GET http://other.example/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: ${host}\r\n`,
    `GET /${"a".repeat(70_000)}`,
  ]
}

const sendTo = (port: number, bytes: Buffer | string, then: (socket: Socket, answer: string) => void) =>
  new Promise<void>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes, "latin1"))
    let answer = ""
    socket.setTimeout(700, () => socket.destroy())
    socket.on("data", (chunk: Buffer) => {
      answer += chunk.toString("latin1", 0, 2_000)
      then(socket, answer)
    })
    socket.on("error", () => {})
    socket.on("close", () => resolve())
  })

export const hostileTunnel = () =>
  beside(
    "hostile-tunnel",
    "a stranger's agent breaks the protocol and floods it, strange clients smuggle, open slowly and abort, beside honest ones",
    0,
    async ({ edge, handle, strangerKey, stranger }) => {
      const port = edge.edgePort
      const host = `${handle}.tunnel.localhost`
      const upgrade = `GET /v1/tunnel HTTP/1.1\r\nHost: connect.tunnel.localhost\r\nConnection: Upgrade\r\nUpgrade: idt/1\r\nAuthorization: Bearer ${strangerKey}\r\nsvc-tunnel-handle: ${stranger}\r\n\r\n`
      const end = Date.now() + 9_000
      let [agents, smuggled, refused, aborted] = [0, 0, 0, 0]
      const slow = Array.from({ length: 300 }, () => {
        const socket = connect(port, "127.0.0.1", () => socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `))
        return socket.on("error", () => {})
      })
      const drip = setInterval(() => slow.forEach((socket) => socket.writable && socket.write("a")), 500)
      const evilAgents = async () => {
        for (let n = 0; Date.now() < end; n++) {
          let isReported = false
          await sendTo(port, upgrade, (socket, answer) => {
            if (isReported || !answer.startsWith("HTTP/1.1 101")) return
            isReported = true
            agents++
            // The client never reads again.
            socket.pause()
            socket.write(evil[n % evil.length]!(stranger))
          })
        }
      }
      const evilClients = async () => {
        const cases = smuggling(host)
        for (let n = 0; Date.now() < end; n++) {
          await sendTo(port, cases[n % cases.length]!, (socket, answer) => {
            if (answer.includes(" 200 ")) smuggled++
            else refused++
            socket.destroy()
          })
        }
      }
      const aborting = async () => {
        while (Date.now() < end) {
          await new Promise<void>((resolve) => {
            const socket = connect(port, "127.0.0.1", () => {
              socket.write(`GET /large HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
              setImmediate(() => (socket.resetAndDestroy(), resolve()))
            })
            socket.on("error", () => resolve())
          })
          aborted++
        }
      }
      await Promise.all([evilAgents(), evilAgents(), evilAgents(), evilClients(), evilClients(), aborting()])
      clearInterval(drip)
      for (const socket of slow) socket.destroy()
      return { agents, refused, smuggled, aborted }
    },
  )

/**
 * The tunnel rows: requests through the tunnel compared with direct requests, nginx as a proxy, `ssh -R` and chisel.
 * The link uses TLS, and strict heads, metering and settings are enabled as in production; the public side is cleartext
 * for all.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic, hostOf } from "../harness/Public.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { round, type Row } from "../harness/Report.ts"
import { http } from "./Load.ts"
import { measurable, memoryOf } from "./Processes.ts"
import { programs } from "./Programs.ts"
import * as References from "./TunnelReferences.ts"
import { drift, figuresOf, inTurn, type Measured, shareOf } from "./Turns.ts"

const largeBytes = 512 * 1024 * 1024

/** A connection that sends small requests one after the other. */
const requester = (port: number, host: string) => {
  const socket: Socket = connect(port, "127.0.0.1")
  socket.setNoDelay(true)
  const bytes = Buffer.from(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  let done: (() => void) | undefined
  let text = ""
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1")
    if (!text.endsWith("\r\n\r\nok")) return
    text = ""
    done?.()
  })
  return {
    ask: () => new Promise<void>((resolve) => ((done = resolve), socket.write(bytes))),
    close: () => socket.destroy(),
  }
}

/** Drives small requests over that many connections. */
const requests = (port: number, host: string, connections: number) =>
  http(port, { method: "GET", path: "/", headers: { host } }, connections)

const wide = 64

/** Measures the throughput of one stream in MB/s, the best of three, read by a separate process. */
const bulk = async (port: number, host: string) => {
  const reader = `const { connect } = require("node:net")
    const start = performance.now()
    let bytes = 0
    const socket = connect({ port: ${port}, host: "127.0.0.1", onread: { buffer: Buffer.alloc(1 << 18), callback: (n) => (bytes += n) > 0 } }, () =>
      socket.write("GET /large HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n"))
    socket.on("close", () => console.log(Math.round(bytes / 1e6 / ((performance.now() - start) / 1000))))`
  const figures: Array<number> = []
  for (let i = 0; i < 3; i++) {
    const { stdout } = await promisify(execFile)(process.execPath, ["-e", reader])
    figures.push(Number(stdout))
  }
  return Math.max(...figures)
}

/** Measures the memory of an idle keep-alive connection at the edge in KB: sockets, stream and buffers. */
const idle = async (edge: Process, host: string) => {
  const hold = async () => {
    const all = Array.from({ length: 2_000 }, () => requester(edge.edgePort, host))
    for (let at = 0; at < all.length; at += 50) await Promise.all(all.slice(at, at + 50).map(({ ask }) => ask()))
    return () => all.forEach(({ close }) => close())
  }
  // The first round grows the heap.
  const first = await hold()
  const before = memoryOf(edge.child.pid!).resident
  const second = await hold()
  const kilobytes = ((memoryOf(edge.child.pid!).resident - before) * 1024) / 2_000
  first()
  second()
  return round(kilobytes, 1)
}

/** Opens connections that request much and read nothing. */
const stalledReaders = (port: number, host: string, count: number) => {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(`GET /large HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      socket.pause()
    })
    return socket.on("error", () => {})
  })
  return () => sockets.forEach((socket) => socket.destroy())
}

export const tunnel = async (): Promise<Row> => {
  const wildcard = selfSigned(["*.tunnel.localhost", "connect.tunnel.localhost"], new Date())
  const home = mkdtempSync(path.join(os.tmpdir(), "svc-bench-"))
  const authority = path.join(home, "ca.pem")
  writeFileSync(authority, wildcard.cert)
  const deployment = await deploy()
  const beside = new Map<string, References.Reference>()
  const origin = await References.startOrigin(largeBytes)
  try {
    const tls = {
      SVC_EDGE_TLS_CERT: wildcard.cert,
      SVC_EDGE_TLS_KEY: wildcard.key,
      SVC_LIMIT_TUNNEL_TRANSFER: String(2 ** 50),
    }
    const api = await deployment.start(["api", "actors"], tls)
    const [edge, other] = [await deployment.start(["edge"], tls), await deployment.start(["edge"], tls)]
    const { session } = await signUp(api.base)
    const { handle, secrets } = await makeIdentity(api.base, session)
    const agent = await References.svcTunnel(
      api.base,
      `https://connect.tunnel.localhost:${edge.edgePort}`,
      origin.port,
      { SVC_KEY: secrets.identity_key, NODE_EXTRA_CA_CERTS: authority },
    )
    const host = hostOf(handle)
    await until("the tunnel", async () => (await fetchPublic(edge.edgePort, handle, "/")).status === 200)
    const others = {
      nginx: [programs("nginx"), References.nginxProxy],
      "ssh -R": [programs("sshd"), References.sshRemote],
      chisel: [programs("chisel"), References.chisel],
    } as const
    const absent: Record<string, string> = {}
    for (const [name, [program, start]] of Object.entries(others)) {
      if (program === undefined) absent[name] = "is not installed"
      else beside.set(name, await start(program, origin.port))
    }
    beside.set("bare Node", await References.bareNode(origin.port))
    const subject = (port: number, pid?: number) => ({
      drive: requests(port, "x", wide),
      ...(pid === undefined ? {} : { pid }),
    })
    const many = await inTurn(
      {
        direct: subject(origin.port),
        ours: { drive: requests(edge.edgePort, host, wide), pid: edge.child.pid! },
        "one hop": { drive: requests(other.edgePort, host, wide), pid: other.child.pid! },
        ...Object.fromEntries([...beside].map(([name, { port }]) => [name, subject(port)])),
      },
      { rounds: 4 },
    )
    const one = await inTurn(
      {
        direct: { drive: requests(origin.port, "x", 1) },
        ours: { drive: requests(edge.edgePort, host, 1) },
        ...Object.fromEntries([...beside].map(([name, { port }]) => [name, { drive: requests(port, "x", 1) }])),
      },
      { rounds: 3 },
    )
    const added = (measured: Measured) => Math.round((measured.p50 - one.direct.p50) * 1000)
    const measured: Readonly<Record<string, Measured>> = many
    const goal = (name: string, atLeast: number) => {
      const reference = measured[name]
      return reference === undefined
        ? []
        : [{ what: `calls/s to ${name}`, value: shareOf(many.ours, reference), atLeast }]
    }
    const large = { direct: await bulk(origin.port, "x"), ours: await bulk(edge.edgePort, host) }
    const figures: Record<string, string | number> = {
      origin: origin.name,
      ...Object.assign({}, ...Object.entries(many).map(([name, measured]) => figuresOf(name, measured))),
      "p99 ms": many.ours.p99,
      "direct p99 ms": many.direct.p99,
      "direct p50 us, one connection": Math.round(one.direct.p50 * 1000),
      ...Object.fromEntries(
        [...beside.keys()].map((name) => [`added p50 us by ${name}`, added((one as Record<string, Measured>)[name]!)]),
      ),
      "one hop to none": shareOf(many["one hop"], many.ours),
      "bulk MB/s": large.ours,
      "direct MB/s": large.direct,
      ...absent,
    }
    for (const [name, { port }] of beside) figures[`bulk to ${name}`] = round(large.ours / (await bulk(port, "x")))
    const release = stalledReaders(edge.edgePort, host, 50)
    // Waits until all buffers between both ends are full.
    await sleep(8_000)
    const stalled = await requests(edge.edgePort, host, wide)(2)
    release()
    const free = await requests(edge.edgePort, host, wide)(2)
    figures["50 stalled readers to none"] = round(stalled.done / stalled.seconds / (free.done / free.seconds))
    if (measurable) figures["KB an idle connection"] = await idle(edge, host)
    agent.kill()
    return {
      id: "tunnel",
      ok: many.ours.wrong === 0,
      what: `requests through edge and agent (TLS link, strict heads, metering) compared with direct requests and other tunnels: ${wide} connections, one connection, one large response`,
      unreliable: drift({ rate: { "the origin": many.direct } }),
      goals: [
        ...goal("direct", 0.3),
        ...goal("nginx", 0.8),
        ...goal("ssh -R", 3),
        { what: "added p50 us", value: added(one.ours), atMost: 100 },
      ],
      figures,
    }
  } finally {
    for (const reference of beside.values()) reference.stop()
    origin.stop()
    rmSync(home, { recursive: true, force: true })
    await deployment.stop()
  }
}

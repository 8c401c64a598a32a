/**
 * The tunnel against the same origin without it, and against nginx as a proxy, `ssh -R` and chisel where the machine has
 * them. TLS on the link, strict heads, metering and settings on, as in production; the public side is clear for all.
 */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { ask, hostOf } from "../harness/Public.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import { round, type Row } from "../harness/Report.ts"
import { rate, type Rate } from "./Throughput.ts"
import * as References from "./TunnelReferences.ts"

const largeBytes = 512 * 1024 * 1024
const seconds = 4
const main = new URL("../../packages/cli/src/main.ts", import.meta.url).pathname

/** A connection that asks one small thing after the other. */
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

const millis = (text: string) => {
  const [, value, unit] = /([\d.]+)(us|ms|s)/.exec(text) ?? []
  return Number(value) * (unit === "us" ? 0.001 : unit === "s" ? 1_000 : 1)
}

/** Small requests, `width` connections: by wrk where it is installed, since a client in Node is slower than the origin. */
const requests = async (port: number, host: string, width: number): Promise<Rate> => {
  const wrk = References.programs("wrk")
  if (wrk !== undefined) {
    const load = (duration: number) =>
      promisify(execFile)(wrk, [
        "-t1",
        `-c${width}`,
        `-d${duration}s`,
        "--latency",
        "-H",
        `Host: ${host}`,
        `http://127.0.0.1:${port}/`,
      ])
    await load(1)
    const { stdout } = await load(seconds)
    const failed = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? /Socket errors: .*/.exec(stdout)?.[0]
    if (failed !== undefined) throw new Error(`wrk: ${failed}`)
    return {
      perSecond: Math.round(Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1])),
      p50: round(millis(/^\s+50%\s+(\S+)/m.exec(stdout)?.[1] ?? ""), 3),
      p99: round(millis(/^\s+99%\s+(\S+)/m.exec(stdout)?.[1] ?? ""), 3),
    }
  }
  const all = Array.from({ length: width }, () => requester(port, host))
  const measured = await rate(width, seconds, (worker) => all[worker]!.ask())
  for (const one of all) one.close()
  return measured
}

/** Megabytes a second of one stream, the best of three, read by a process of its own. */
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

/** Resident memory of a process in KB. */
const memoryOf = (pid: number | undefined) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])

/** What a connection that was answered and stays costs the edge, in KB: its sockets, its stream and their buffers. */
const idle = async (edge: Process, host: string) => {
  const hold = async () => {
    const all = Array.from({ length: 2_000 }, () => requester(edge.edgePort, host))
    for (let at = 0; at < all.length; at += 50) await Promise.all(all.slice(at, at + 50).map(({ ask }) => ask()))
    return () => all.forEach(({ close }) => close())
  }
  // The first round is the heap's.
  const first = await hold()
  const before = memoryOf(edge.child.pid)
  const second = await hold()
  const kilobytes = (memoryOf(edge.child.pid) - before) / 2_000
  first()
  second()
  return round(kilobytes, 1)
}

/** Connections that ask for much and read nothing. */
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
    const agent = spawn(
      process.execPath,
      [
        main,
        "tunnel",
        String(origin.port),
        "--api",
        api.base,
        "--quiet",
        "--edge",
        `https://connect.tunnel.localhost:${edge.edgePort}`,
      ],
      {
        env: { PATH: process.env["PATH"], SVC_KEY: secrets.identity_key, NODE_EXTRA_CA_CERTS: authority },
        stdio: ["ignore", "pipe", "inherit"],
      },
    )
    await once(agent.stdout, "data")
    agent.stdout.resume()
    const host = hostOf(handle)
    await until("the tunnel", async () => (await ask(edge.edgePort, handle, "/")).status === 200)
    const direct = {
      many: await requests(origin.port, "x", 64),
      one: await requests(origin.port, "x", 1),
      bulk: await bulk(origin.port, "x"),
    }
    const ours = {
      many: await requests(edge.edgePort, host, 64),
      one: await requests(edge.edgePort, host, 1),
      bulk: await bulk(edge.edgePort, host),
    }
    const release = stalledReaders(edge.edgePort, host, 50)
    // Until every buffer on their way is full.
    await new Promise((resolve) => setTimeout(resolve, 8_000))
    const beside = await requests(edge.edgePort, host, 64)
    release()
    const again = await requests(edge.edgePort, host, 64)
    const hop = await requests(other.edgePort, host, 64)
    const idleKilobytes = existsSync("/proc/self/status") ? await idle(edge, host) : "not measured here"
    agent.kill()

    const figures: Record<string, string | number> = {
      "ratio to direct": round(ours.many.perSecond / direct.many.perSecond),
      "ours/s": ours.many.perSecond,
      "direct/s": direct.many.perSecond,
      origin: origin.name,
      "p99 to direct": round(ours.many.p99 / direct.many.p99, 1),
      "p99 ms": ours.many.p99,
      "added p50 us": Math.round((ours.one.p50 - direct.one.p50) * 1000),
      "one hop to none": round(hop.perSecond / again.perSecond),
      "50 stalled readers to none": round(beside.perSecond / again.perSecond),
      "KB an idle connection": idleKilobytes,
      "bulk MB/s": ours.bulk,
      "direct MB/s": direct.bulk,
    }
    const references = {
      nginx: [References.programs("nginx"), References.nginxProxy],
      "ssh -R": [References.programs("sshd"), References.sshRemote],
      chisel: [References.programs("chisel"), References.chisel],
    } as const
    for (const [name, [program, start]] of Object.entries(references)) {
      if (program === undefined) {
        figures[name] = "is not installed"
        continue
      }
      const reference = await start(program, origin.port)
      const many = await requests(reference.port, "x", 64)
      const one = await bulk(reference.port, "x")
      reference.stop()
      figures[`to ${name}`] = round(ours.many.perSecond / many.perSecond)
      figures[`${name}/s`] = many.perSecond
      figures[`bulk to ${name}`] = round(ours.bulk / one)
    }
    return {
      id: "tunnel",
      ok: true,
      what: "requests through edge and agent (TLS link, strict heads, metering) against the origin itself and others, 64 connections; one connection; one large answer",
      figures,
    }
  } finally {
    origin.stop()
    rmSync(home, { recursive: true, force: true })
    await deployment.stop()
  }
}

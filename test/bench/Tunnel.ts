/** The tunnel against the same origin without it, and against nginx, `ssh -R` and chisel where the machine has them. */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy } from "../rig/Deployment.ts"
import { freePort } from "../rig/Ports.ts"
import { round, type Row } from "../rig/Report.ts"
import { rate } from "./Throughput.ts"

/** An origin in a process of its own: a small answer, and as many bytes as asked. */
const startOrigin = async () => {
  const child = spawn(
    process.execPath,
    [
      "-e",
      `const chunk = Buffer.alloc(262144)
       require("node:http").createServer((q, r) => {
         const n = Number(q.url.slice(2))
         if (!n) { r.setHeader("content-length", "2"); return r.end("ok") }
         let left = n; const pour = () => { while (left-- > 0) if (!r.write(chunk)) return; r.end() }
         r.setHeader("content-length", String(n * chunk.length)); r.on("drain", pour); pour()
       }).listen(0, "127.0.0.1", function () { console.log(this.address().port) })`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const [port] = (await once(child.stdout, "data")) as [Buffer]
  return { port: Number(port.toString()), stop: () => child.kill() }
}

/** A connection that asks one small thing after the other; the leanest client there is. */
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

const requests = async (port: number, host: string, width: number) => {
  const all = Array.from({ length: width }, () => requester(port, host))
  const measured = await rate(width, 3, (worker) => all[worker]!.ask())
  for (const one of all) one.close()
  return measured
}

/** Megabytes a second of one stream. */
const bulk = (port: number, host: string) =>
  new Promise<number>((resolve) => {
    const chunks = 2_000
    const start = performance.now()
    let bytes = 0
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`GET /?${chunks} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    )
    socket.on("data", (chunk) => (bytes += chunk.length))
    socket.on("close", () => resolve(Math.round(bytes / 1e6 / ((performance.now() - start) / 1000))))
  })

const installed = (program: string) => {
  try {
    execFileSync("which", [program], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

const chisel = async (origin: number) => {
  const [server, port] = [await freePort(), await freePort()]
  const children = [
    spawn("chisel", ["server", "--reverse", "--host", "127.0.0.1", "--port", String(server)], { stdio: "ignore" }),
    spawn("chisel", ["client", `127.0.0.1:${server}`, `R:127.0.0.1:${port}:127.0.0.1:${origin}`], { stdio: "ignore" }),
  ]
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  return { port, stop: () => children.forEach((child) => child.kill()) }
}

export const tunnel = async (): Promise<Row> => {
  const deployment = await deploy()
  const origin = await startOrigin()
  try {
    const service = await deployment.start()
    const { session } = await signUp(service.base)
    const { handle, secrets } = await makeIdentity(service.base, session)
    const agent = spawn(
      process.execPath,
      [
        new URL("../../packages/cli/src/main.ts", import.meta.url).pathname,
        "tunnel",
        String(origin.port),
        "--api",
        service.base,
      ],
      { env: { PATH: process.env["PATH"], SVC_KEY: secrets.identity_key }, stdio: ["ignore", "pipe", "inherit"] },
    )
    await once(agent.stdout, "data")
    agent.stdout.resume()
    const host = `${handle}.tunnel.localhost`
    const direct = {
      many: await requests(origin.port, "x", 64),
      one: await requests(origin.port, "x", 1),
      bulk: await bulk(origin.port, "x"),
    }
    const ours = {
      many: await requests(service.edgePort, host, 64),
      one: await requests(service.edgePort, host, 1),
      bulk: await bulk(service.edgePort, host),
    }
    agent.kill()
    const beside = installed("chisel") ? await chisel(origin.port) : undefined
    const other =
      beside === undefined
        ? undefined
        : { many: await requests(beside.port, "x", 64), bulk: await bulk(beside.port, "x") }
    beside?.stop()
    return {
      id: "tunnel",
      ok: true,
      what: "requests through edge and agent (clear link, strict heads) against the origin itself, 64 connections; one connection; one large answer",
      figures: {
        "ratio to direct": round(ours.many.perSecond / direct.many.perSecond),
        "ours/s": ours.many.perSecond,
        "direct/s": direct.many.perSecond,
        "p99 ms": ours.many.p99,
        "added p50 ms": round(ours.one.p50 - direct.one.p50, 3),
        "bulk MB/s": ours.bulk,
        "direct MB/s": direct.bulk,
        chisel: other === undefined ? "is not installed" : `${other.many.perSecond}/s, ${other.bulk} MB/s`,
      },
    }
  } finally {
    origin.stop()
    await deployment.stop()
  }
}

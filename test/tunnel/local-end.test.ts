/** The local end of a Tunnel: what the agent does with each stream, and when it counts as idle. */
import { createServer, type Socket } from "node:net"
import type { AddressInfo } from "node:net"
import { type Local, makeLocalEnd } from "@svc/tunnel-edge/agent/LocalEnd"
import { kind, reset } from "@svc/tunnel-edge/protocol/Manifest"
import type { MuxStream } from "@svc/tunnel-edge/protocol/Mux"
import { afterEach, describe, expect, it } from "vitest"
import { freePort } from "../harness/Ports.ts"
import { eventually } from "../harness/Eventually.ts"

const ended: Array<() => void> = []
afterEach(() => ended.splice(0).forEach((end) => end()))

/** A stream that records what is done to it. */
const recorded = () => {
  const did: Array<string> = []
  const written: Array<Buffer> = []
  const own = {
    isOpen: true,
    write: (bytes: Buffer) => (did.push(`write ${bytes}`), written.push(bytes), true),
    end: () => void did.push("end"),
    reset: (code: number, text = "") => {
      own.isOpen = false
      did.push(`reset ${code} ${text}`.trim())
    },
    delivered: () => {},
  }
  const stream = own as unknown as MuxStream
  return {
    did,
    written,
    stream,
    has: (what: string) =>
      eventually(
        async () => did,
        (all) => all.includes(what),
      ),
  }
}
/** A local program that answers everything with `ok`, and records what it gets. */
const program = async () => {
  const got: Array<string> = []
  const sockets: Array<Socket> = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on("error", () => {})
    socket.on("data", (bytes: Buffer) => {
      got.push(bytes.toString())
      socket.write("ok")
    })
    socket.on("end", () => {
      got.push("end")
      socket.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  ended.push(() => (sockets.forEach((socket) => socket.destroy()), server.close()))
  return { port: (server.address() as AddressInfo).port, got, sockets, stop: () => server.close() }
}
const local = (options: Local) => {
  const changes: Array<string> = []
  const end = makeLocalEnd(
    { onLocal: (isUp, reason) => void changes.push(`${isUp ? "up" : "down"} ${reason}`.trim()), ...options },
    () => void changes.push("told"),
  )
  ended.push(end.stop)
  return { ...end, changes }
}
const get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"

describe("a stream of a Tunnel", () => {
  it("of an unknown kind, or of HTTP to an agent of raw connections only, is refused", async () => {
    const { port, got } = await program()
    for (const [of, tcpOnly, outcome] of [
      [kind.probe, false, [`reset ${reset.policy}`]],
      [99, false, [`reset ${reset.policy}`]],
      [kind.http, true, [`reset ${reset.local_refused}`]],
      [kind.passthrough, true, [`reset ${reset.local_refused}`]],
    ] as const) {
      const { stream, did } = recorded()
      await local({ port, tcpOnly }).forward(stream, of, {})
      expect(did).toEqual(outcome)
    }
    expect(got).toEqual([])
    const { stream, has } = recorded()
    await local({ port, tcpOnly: true }).forward(stream, kind.tcp, {})
    stream.onData(Buffer.from("hello"))
    await has("write ok")
    await expect(local({}).forward(stream, kind.tcp, {})).rejects.toThrow("a tunnel needs a port or a handler")
  })

  it("passes what arrived before the local connection was open, in order and with its end", async () => {
    const { port, got } = await program()
    const { stream, has } = recorded()
    const end = local({ port })
    const forwarded = end.forward(stream, kind.tcp, {})
    for (const text of ["one ", "two"]) stream.onData(Buffer.from(text))
    stream.onEnd()
    expect(end.activeCount()).toBe(0)
    await forwarded
    expect(end.activeCount()).toBe(1)
    await has("end")
    expect([got.slice(0, -1).join(""), got.at(-1)]).toEqual(["one two", "end"])
    await eventually(
      async () => end.activeCount(),
      (n) => n === 0,
    )
    expect(end.changes).toEqual([])
  })

  it("whose client left is not connected, and a reset ends the local connection", async () => {
    const { port, sockets } = await program()
    const end = local({ port })
    const left = recorded()
    const forwarded = end.forward(left.stream, kind.tcp, {})
    left.stream.reset(reset.cancel)
    await forwarded
    expect([end.activeCount(), sockets.length]).toEqual([0, 0])
    // This client leaves while the local connection is opened.
    const early = recorded()
    await end.forward(early.stream, kind.tcp, {})
    early.stream.onReset(reset.cancel)
    await eventually(
      async () => end.activeCount(),
      (n) => n === 0,
    )
    const { stream, has } = recorded()
    await end.forward(stream, kind.tcp, {})
    stream.onData(Buffer.from("x"))
    await has("write ok")
    const closed = new Promise((resolve) => sockets.at(-1)!.once("close", resolve))
    stream.onReset(reset.cancel)
    await closed
    await eventually(
      async () => end.activeCount(),
      (n) => n === 0,
    )
  })

  it("continues towards a local program that has ended its side, and keeps the bytes that wait to be sent", async () => {
    const { port, got, sockets } = await program()
    const { stream, has, written } = recorded()
    await local({ port }).forward(stream, kind.tcp, {})
    stream.onData(Buffer.from("x"))
    await has("write ok")
    sockets[0]!.end("bye")
    await has("write bye")
    expect(written.map(String)).toEqual(["ok", "bye"])
    await has("end")
    stream.onData(Buffer.from("late"))
    await eventually(
      async () => got,
      (all) => all.includes("late"),
    )
  })

  it("says why the local port is not reached, and reports each change of it once", async () => {
    const port = await freePort()
    const end = local({ port })
    for (let n = 0; n < 2; n++) {
      const { stream, has } = recorded()
      await end.forward(stream, kind.http, {})
      await has(`reset ${reset.local_refused} ECONNREFUSED`)
    }
    expect([end.changes, end.isUp(), end.activeCount()]).toEqual([["down ECONNREFUSED", "told"], false, 0])
    await end.probe()
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
    ended.push(() => server.close())
    await end.probe()
    await eventually(
      async () => end.isUp(),
      (is) => is,
    )
    expect(end.changes).toEqual(["down ECONNREFUSED", "told", "up", "told"])
  })

  it("is reported with its requests; after an upgrade nothing more is read", async () => {
    const { port } = await program()
    const seen: Array<string> = []
    const end = local({ port, onRequest: ({ kind: of, line, peer }) => void seen.push(`${of} ${line} ${peer}`) })
    const open = async (of: number, meta: object, ...texts: ReadonlyArray<string>) => {
      const { stream, has } = recorded()
      await end.forward(stream, of, meta as Record<string, unknown>)
      for (const text of texts) stream.onData(Buffer.from(text))
      await has("write ok")
    }
    await open(kind.tcp, { peer: "192.0.2.1" }, get)
    await open(kind.passthrough, {}, get)
    await open(kind.http, { peer: "192.0.2.1" }, get + get.replace("GET /a", "POST /b"), get.replace("/a", "/c"))
    await open(kind.http, {}, get.replace("\r\n\r\n", "\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), get)
    // After invalid bytes no more requests are reported, and the stream continues.
    await open(kind.http, {}, "nonsense\r\n\r\n", get)
    expect(seen).toEqual([
      "tcp tcp 192.0.2.1",
      "tls tls unknown",
      "http GET /a 192.0.2.1",
      "http POST /b 192.0.2.1",
      "http GET /c 192.0.2.1",
      "http GET /a unknown",
    ])
  })

  it("reaches a handler in this process, whose port is always up", async () => {
    const end = local({ handler: (request, response) => response.end(request.url) })
    await end.probe()
    const { stream, did } = recorded()
    await end.forward(stream, kind.http, {})
    stream.onData(Buffer.from(get))
    await eventually(
      async () => did.join(""),
      (text) => text.includes("/a"),
    )
    expect(end.changes).toEqual([])
  })
})

describe("an agent that leaves", () => {
  it("waits for the responses in flight, and ends streams that are idle", async () => {
    const silent = createServer((socket) => void socket.on("error", () => {}))
    const waiting: Array<Socket> = []
    silent.on("connection", (socket) => void waiting.push(socket))
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
    ended.push(() => (waiting.forEach((socket) => socket.destroy()), silent.close()))
    const end = local({ port: (silent.address() as AddressInfo).port })
    const [idle, awaited] = [recorded(), recorded()]
    // A raw connection has no responses to wait for.
    await end.forward(idle.stream, kind.tcp, {})
    await end.forward(awaited.stream, kind.http, {})
    await eventually(
      async () => waiting.length,
      (n) => n === 2,
    )
    for (const { stream } of [idle, awaited]) stream.onData(Buffer.from(get))
    let isSettled = false
    const settled = end.settle(60_000).then(() => (isSettled = true))
    await idle.has("end")
    expect([awaited.did, isSettled, end.activeCount()]).toEqual([[], false, 1])
    // Bytes that the local program sends after the end of an idle stream are dropped.
    for (const socket of waiting) socket.write("late")
    await awaited.has("write late")
    await settled
    expect([idle.did, awaited.did, end.activeCount()]).toEqual([["end"], ["write late", "end"], 0])
  })

  it("serves streams that an edge opens before it knows that the agent leaves", async () => {
    const { port } = await program()
    const end = local({ port })
    let isSettled = false
    const settled = end.settle(60_000).then(() => (isSettled = true))
    const { stream, has } = recorded()
    await end.forward(stream, kind.http, {})
    expect(isSettled).toBe(false)
    stream.onData(Buffer.from(get))
    await has("write ok")
    await settled
  })

  it("waits no longer than the given time", async () => {
    const { port } = await program()
    const end = local({ port })
    await end.settle(0)
    const { stream, did } = recorded()
    await end.forward(stream, kind.http, {})
    await end.settle(100)
    expect([did, end.activeCount()]).toEqual([[], 1])
  })
})

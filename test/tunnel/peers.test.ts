/** Links between edges: who may open one, and which streams count as in flight. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import * as Peers from "@svc/tunnel-edge/edge/links/Peers"
import type { Head } from "@svc/tunnel-edge/protocol/RequestHead"
import { afterEach, describe, expect, it } from "vitest"
import { eventually } from "../harness/Service.ts"

const ended: Array<() => void> = []
afterEach(() => ended.splice(0).forEach((end) => end()))

const peers = () => {
  const made = Peers.make({
    edgeId: "edge",
    connectHost: "connect.tunnel.localhost",
    ca: () => undefined,
    // The stamp contains the text itself; the sealing is tested elsewhere.
    sealing: {
      stamp: (purpose: string, text: string) => `${purpose}:${text}`,
      unstamp: (purpose: string, text: string) =>
        text.startsWith(`${purpose}:`) ? text.slice(purpose.length + 1) : undefined,
    } as never,
    registry: {
      pick: () => ({ link: { mux: { open: () => ({ write: () => true, end: () => {}, reset: () => {} }) } } }),
    } as never,
    now: Date.now,
    listens: () => true,
  })
  ended.push(made.close)
  return made
}

/** Starts a port that hands connections to the peers, like an edge's listener. */
const listening = async (accepting: Peers.Peers) => {
  const server = createServer((socket) =>
    socket.once("data", (bytes: Buffer) => {
      const stamp = /svc-tunnel-peer: (.*)\r\n/.exec(bytes.toString())?.[1]
      const headers = new Map(stamp === undefined ? [] : [["svc-tunnel-peer", stamp]])
      accepting.accept({ headers } as unknown as Head, socket, Buffer.alloc(0))
    }),
  )
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  ended.push(() => server.close())
  return (server.address() as AddressInfo).port
}

/** Returns an edge's response to a connection with this stamp; empty if the edge closes the connection. */
const shown = (port: number, stamp: string | undefined) =>
  new Promise<string>((resolve) => {
    const socket: Socket = connect(port, "127.0.0.1", () =>
      socket.write(
        `GET ${Peers.peerPath} HTTP/1.1\r\n${stamp === undefined ? "" : `svc-tunnel-peer: ${stamp}\r\n`}\r\n`,
      ),
    )
    let text = ""
    const done = () => {
      socket.destroy()
      resolve(text)
    }
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1")
      done()
    })
    socket.on("error", done).on("close", done)
  })

describe("an edge", () => {
  it("accepts only edges with a stamp from this minute", async () => {
    const port = await listening(peers())
    const at = (millis: number) => `edge-peer:edge/${Date.now() + millis}`
    const slack = 5_000
    for (const good of [at(0), at(slack - Timing.peerStampMillis), at(Timing.peerStampMillis - slack)])
      expect(await shown(port, good)).toMatch(/^HTTP\/1\.1 101 /)
    for (const bad of [
      undefined,
      "edge-peer:edge",
      `another:edge/${Date.now()}`,
      at(-Timing.peerStampMillis - slack),
      at(Timing.peerStampMillis + slack),
    ])
      expect(await shown(port, bad)).toBe("")
  })

  it("is busy while one stream of another edge is open", async () => {
    const accepting = peers()
    const port = await listening(accepting)
    const link = await peers().to(`127.0.0.1:${port}`)
    await link!.taken()
    expect(accepting.isBusy()).toBe(false)
    const stream = link!.mux.open(1, 0, Buffer.from(JSON.stringify({ name: "ada" })))!
    await link!.taken()
    expect(accepting.isBusy()).toBe(true)
    stream.reset(1)
    await link!.taken()
    expect(accepting.isBusy()).toBe(false)
  })

  it("dials another edge once, and again after that link closed", async () => {
    const accepting = peers()
    const port = await listening(accepting)
    const dialling = peers()
    const [first, second] = await Promise.all([dialling.to(`127.0.0.1:${port}`), dialling.to(`127.0.0.1:${port}`)])
    expect(first).toBe(second)
    expect(await dialling.to("127.0.0.1:1")).toBeUndefined()
    accepting.leave()
    const third = await eventually(
      () => dialling.to(`127.0.0.1:${port}`),
      (link) => link !== first,
    )
    expect(third).toBeDefined()
    third!.close("the test is over")
    first!.close("the test is over")
  })
})

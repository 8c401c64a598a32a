/** Links between edges: who may open one, and which streams count as in flight. */
import { type AddressInfo, connect, createServer, type Server, Socket } from "node:net"
import { createServer as createSecureServer, type TlsOptions } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { kind, reset } from "@svc/tunnel-edge/protocol/Manifest"
import type { MuxStream } from "@svc/tunnel-edge/protocol/Mux"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import * as Peers from "@svc/tunnel-edge/edge/links/Peers"
import type { Head } from "@svc/tunnel-edge/protocol/RequestHead"
import { afterEach, describe, expect, it, vi } from "vitest"
import { eventually } from "../harness/Eventually.ts"

const ended: Array<() => void> = []
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  for (const end of ended.splice(0)) end()
})

const peers = (own: Partial<Parameters<typeof Peers.make>[0]> = {}) => {
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
    ...own,
  })
  ended.push(made.close)
  return made
}

/** Starts a port that hands connections to the peers, like an edge's listener. */
const listening = async (accepting: Peers.Peers, certificate?: TlsOptions) => {
  const take = (socket: Socket) =>
    socket.once("data", (bytes: Buffer) => {
      const stamp = /svc-tunnel-peer: (.*)\r\n/.exec(bytes.toString())?.[1]
      const headers = new Map(stamp === undefined ? [] : [["svc-tunnel-peer", stamp]])
      accepting.accept({ headers } as unknown as Head, socket, Buffer.alloc(0))
    })
  const server = certificate === undefined ? createServer(take) : createSecureServer(certificate, take)
  server.on("tlsClientError", () => {})
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  ended.push(() => server.close())
  return (server.address() as AddressInfo).port
}

const addressOf = async (server: Server) => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  ended.push(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
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
    third!.close("lost")
    const fourth = await dialling.to(`127.0.0.1:${port}`)
    expect(fourth).not.toBe(third)
    fourth!.close("the test is over")
    first!.close("the test is over")
  })
})

/** An edge with a link to another edge, at which an agent holds a link whose streams the test observes. */
const linked = async () => {
  const did: Array<string> = []
  const onward = {
    accepts: true,
    taken: 0,
    write: (bytes: Buffer) => ((onward.taken += bytes.length), onward.accepts),
    end: () => void did.push("end"),
    reset: (code: number) => void did.push(`reset ${code}`),
    delivered: (bytes: number) => void did.push(`delivered ${bytes}`),
  }
  const stream = onward as unknown as MuxStream
  const pick = (name: string) => {
    did.push(`pick ${name}`)
    if (name !== "ada") return undefined
    const open = (of: number, flags: number, meta: Buffer) => (did.push(`open ${of} ${flags} ${meta}`), stream)
    return { link: { mux: { open } } }
  }
  const accepting = peers({ registry: { pick } as never, listens: (name, port) => name === "ada" && port === 4_000 })
  const address = `127.0.0.1:${await listening(accepting)}`
  const dialling = peers()
  const link = (await dialling.to(address))!
  const open = (meta: object, of: number = kind.http) => link.mux.open(of, 0, Buffer.from(JSON.stringify(meta)))!
  return { did, stream, onward, link, open, dialling, address }
}

describe("a stream from another edge", () => {
  it("opens a stream of the agent's link with the same kind and what else it says, and is marked as forwarded", async () => {
    const { did, open, link } = await linked()
    open({ name: "ada", tcp_port: 1, peer: "192.0.2.1" }, kind.tcp)
    await link.taken()
    expect(did).toEqual(["pick ada", 'open 2 1 {"peer":"192.0.2.1"}'])
  })

  it("is reset with `not_here` if no agent of the name is connected", async () => {
    const { did, open, link } = await linked()
    const codes: Array<number> = []
    for (const meta of [{ name: "bob" }, { name: 7 }, {}]) open(meta).onReset = (code) => void codes.push(code)
    await link.taken()
    expect([codes, did]).toEqual([[reset.not_here, reset.not_here, reset.not_here], ["pick bob"]])
  })

  it("carries bytes, ends and resets both ways, and credits bytes once the other side took them", async () => {
    const { did, stream, onward, open, link } = await linked()
    const mine = open({ name: "ada" })
    const back: Array<string> = []
    mine.onData = (bytes) => {
      back.push(bytes.toString())
      mine.delivered(bytes.length)
    }
    mine.onEnd = () => void back.push("end")
    const credited = vi.spyOn(mine as unknown as { credited: () => void }, "credited")
    await link.taken()
    did.length = 0
    // Credit is returned for a quarter of the window, which are 64 KiB.
    const large = Buffer.alloc(64 * 1024, "x")
    onward.accepts = false
    mine.write(large)
    await link.taken()
    expect([onward.taken, credited.mock.calls.length]).toEqual([large.length, 0])
    stream.onDrain()
    await link.taken()
    expect(credited.mock.calls).toEqual([[large.length]])
    // Credit is returned only once.
    stream.onDrain()
    onward.accepts = true
    mine.write(large)
    await link.taken()
    expect([onward.taken, credited.mock.calls]).toEqual([2 * large.length, [[large.length], [large.length]]])
    stream.onData(Buffer.from("back"))
    stream.onEnd()
    await link.taken()
    expect([back, did.splice(0)]).toEqual([["back", "end"], ["delivered 4"]])
    mine.end()
    await link.taken()
    expect(did.splice(0)).toEqual(["end"])
  })

  it("passes on a reset with its code", async () => {
    const { did, stream, open, link } = await linked()
    const mine = open({ name: "ada" })
    await link.taken()
    did.length = 0
    mine.reset(reset.quota)
    await link.taken()
    expect(did).toEqual([`reset ${reset.quota}`])
    const other = open({ name: "ada" })
    const codes: Array<number> = []
    other.onReset = (code) => void codes.push(code)
    await link.taken()
    stream.onReset(reset.local_refused)
    await link.taken()
    expect(codes).toEqual([reset.local_refused])
  })
})

describe("another edge", () => {
  it("on the same machine says whether it listens on the TCP port of a name", async () => {
    const { dialling, address } = await linked()
    expect(await dialling.listens(address, "ada", 4_000)).toBe(true)
    expect(await dialling.listens(address, "ada", 4_001)).toBe(false)
    expect(await dialling.listens(address, "bob", 4_000)).toBe(false)
    expect(await dialling.listens("127.0.0.1:1", "ada", 4_000)).toBe(false)
  })

  it("that does not answer in time listens on nothing", async () => {
    const { dialling, address, link, open } = await linked()
    // The other edge is suspended: nothing that is written reaches it.
    vi.spyOn(link.mux, "send").mockImplementation(() => {})
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const asked = dialling.listens(address, "ada", 4_000)
    await new Promise((resolve) => setImmediate(resolve))
    const before = link.mux.streams.size
    vi.advanceTimersByTime(Timing.peerDialMillis - 1)
    expect(link.mux.streams.size).toBe(before)
    vi.advanceTimersByTime(1)
    expect(await Promise.race([asked, new Promise((resolve) => setImmediate(resolve))])).toBe(false)
    expect(link.mux.streams.size).toBe(before - 1)
    expect(open({ name: "ada" })).toBeDefined()
  })

  it("that refuses the stamp is unreachable until its clock is right again", async () => {
    let skew = 2 * Timing.peerStampMillis
    const port = await listening(peers())
    const address = `127.0.0.1:${port}`
    const dialling = peers({ now: () => Date.now() + skew })
    // The timers stand still, so the dial does not time out: only a refusal ends it.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    expect(await dialling.to(address)).toBeUndefined()
    skew = 0
    expect(await dialling.to(address)).toBeDefined()
  })

  it("is only reached with the configured certificate", async () => {
    const [own, foreign] = [
      selfSigned(["*.tunnel.localhost"], new Date()),
      selfSigned(["*.tunnel.localhost"], new Date()),
    ]
    const names: Array<unknown> = []
    const SNICallback = (name: string, done: (error: null) => void) => (names.push(name), done(null))
    const address = `127.0.0.1:${await listening(peers(), { ...own, SNICallback })}`
    expect(await peers({ ca: () => foreign.cert }).to(address)).toBeUndefined()
    const link = await peers({ ca: () => own.cert }).to(address)
    await link!.taken()
    expect(names).toEqual(["connect.tunnel.localhost", "connect.tunnel.localhost"])
    link!.close("the test is over")
  })

  it("that answers with anything but 101 is no edge", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {})
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n")
        setImmediate(() => socket.write("\r\nbody"))
      })
    })
    expect(await peers().to(await addressOf(server))).toBeUndefined()
  })

  it("may close its link together with its response", async () => {
    const answers = createServer((socket) => {
      socket.on("error", () => {})
      // A frame of an unknown type is a protocol error.
      socket.once("data", () => socket.write(Buffer.concat([Buffer.from(Peers.switching), Buffer.alloc(8, 0x7f)])))
    })
    const dialling = peers()
    const address = await addressOf(answers)
    const first = await dialling.to(address)
    await first!.taken()
    expect(await dialling.to(address)).not.toBe(first)
  })

  it("that accepts the connection and stays silent is unreachable", async () => {
    const silent = createServer((socket) => void socket.on("error", () => {}))
    const { setTimeout } = Socket.prototype
    vi.spyOn(Socket.prototype, "setTimeout").mockImplementation(function (this: Socket, millis, done) {
      return setTimeout.call(this, millis / 100, done)
    })
    expect(await peers().to(await addressOf(silent))).toBeUndefined()
  })
})

/** Connections that the edge forwards without reading them: who is admitted, what the agent gets, and when they end. */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import type { Standing } from "@svc/cluster/tunnel/TunnelQueries"
import type { AddressBook } from "@svc/domain/Addresses"
import { defaultSettings } from "@svc/domain/tunnel/Tunnel"
import * as Hosts from "@svc/tunnel-edge/edge/routing/Hosts"
import * as RawConnections from "@svc/tunnel-edge/edge/tcp/RawConnections"
import * as TcpPorts from "@svc/tunnel-edge/edge/tcp/TcpPorts"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { kind, reset } from "@svc/tunnel-edge/protocol/Manifest"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { freePort } from "../harness/Ports.ts"
import { eventually } from "../harness/Eventually.ts"

const name = "ada"

/** A stream of an agent's link that records what is done to it, and the route to it. */
const agent = (more: Partial<TcpPorts.TcpRoute> = {}) => {
  const did: Array<string> = []
  const stream = {
    write: (bytes: Buffer) => (did.push(`write ${bytes}`), true),
    end: () => void did.push("end"),
    reset: (code: number) => void did.push(`reset ${code}`),
    delivered: () => {},
    onData: (bytes: Buffer) => void bytes,
  }
  const ends = { cut: () => {}, withdrawn: () => {} }
  const route: TcpRoute = {
    open: (of, meta) => (did.push(`open ${of} ${JSON.stringify(meta)}`), stream as never),
    proxyProtocol: false,
    passage: (cut) => {
      ends.cut = cut
      const count = (direction: string, bytes: number) => (did.push(`${direction} ${bytes}`), true)
      return {
        count,
        onRoom: () => {},
        countRequest: () => void did.push("request"),
        close: () => void did.push("meter closes"),
      } as never
    },
    enter: (end) => {
      ends.withdrawn = end
      return () => void did.push("leave")
    },
    ...more,
  }
  return { did, stream, route, ends }
}
type TcpRoute = TcpPorts.TcpRoute

/** Connects, and returns what the client got, as text, and the error that ended the connection, if any. */
const client = async (port: number, host = "127.0.0.1") => {
  const socket = connect({ port, host, allowHalfOpen: true })
  let text = ""
  socket.on("data", (bytes: Buffer) => (text += bytes.toString()))
  const closed = new Promise<string | undefined>((resolve) => {
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code))
    socket.once("end", () => resolve(undefined))
  })
  await once(socket, "connect").catch(() => {})
  return { socket, closed, text: () => text }
}

describe("a connection to a TCP port", () => {
  const listening = async (route: () => Promise<TcpRoute | undefined>, admit = true, host = "127.0.0.1") => {
    const sockets: Array<Socket> = []
    const asked: Array<[string, string]> = []
    const ports = TcpPorts.make(
      host,
      (of, from) => (asked.push([of, from]), route()),
      (socket) => (sockets.push(socket), admit),
      [],
    )
    const port = await freePort()
    expect(await ports.open(name, port)).toBe(true)
    return { ports, port, sockets, asked }
  }

  it("is reset beyond the limit of connections, without a route, and if the route or the link fails", async () => {
    const { route, did } = agent()
    for (const [found, admit] of [
      [async () => route, false],
      [async () => undefined, true],
      [() => Promise.reject(new Error("down")), true],
      [async () => ({ ...route, open: () => undefined }), true],
    ] as const) {
      const { ports, port, asked } = await listening(found, admit)
      expect(await (await client(port)).closed).toBe("ECONNRESET")
      expect(asked).toEqual(admit ? [[name, "127.0.0.1"]] : [])
      ports.closeAll()
    }
    expect(did).toEqual([])
  })

  it("carries bytes both ways with its half-close, and is metered until it closes", async () => {
    const { route, did, stream } = agent()
    const { ports, port, sockets } = await listening(async () => route)
    const { socket, text, closed } = await client(port)
    socket.write("hello")
    await eventually(
      async () => did,
      (all) => all.includes("in 5"),
    )
    expect(did.splice(0)).toEqual([`open ${kind.tcp} {"peer":"127.0.0.1"}`, "request", "write hello", "in 5"])
    expect(sockets[0]!.timeout).toBe(Timing.rawIdleMillis)
    stream.onData(Buffer.from("back"))
    await eventually(
      async () => text(),
      (got) => got === "back",
    )
    socket.end()
    await eventually(
      async () => did,
      (all) => all.includes("end"),
    )
    stream.onData(Buffer.from("more"))
    await eventually(
      async () => text(),
      (got) => got === "backmore",
    )
    expect(did.splice(0)).toEqual(["out 4", "end", "out 4"])
    // An hour without a byte.
    sockets[0]!.emit("timeout")
    await closed
    await eventually(
      async () => did,
      (all) => all.includes("leave"),
    )
    expect(did.toSorted()).toEqual(["leave", "meter closes", `reset ${reset.cancel}`].toSorted())
    ports.closeAll()
  })

  it("is reset when the transfer is used up, and when the settings no longer admit the client", async () => {
    for (const why of ["cut", "withdrawn"] as const) {
      const { route, did, ends } = agent()
      const { ports, port } = await listening(async () => route)
      const { closed } = await client(port)
      await eventually(
        async () => did,
        (all) => all.includes("request"),
      )
      ends[why]()
      expect(await closed).toBe("ECONNRESET")
      await eventually(
        async () => did,
        (all) => all.includes("leave"),
      )
      expect(did).toContain("meter closes")
      ports.closeAll()
    }
  })

  it.each([
    ["127.0.0.1", "TCP4"],
    ["::1", "TCP6"],
  ])("begins with a PROXY header if the settings say so (%s)", async (host, family) => {
    const { route, did } = agent({ proxyProtocol: true })
    const { ports, port } = await listening(async () => route, true, host)
    const { socket } = await client(port, host)
    await eventually(
      async () => did,
      (all) => all.length > 2,
    )
    expect(did[2]).toBe(`write PROXY ${family} ${host} ${host} ${socket.localPort} ${port}\r\n`)
    socket.destroy()
    ports.closeAll()
  })
})

describe("a connection that the edge does not read", () => {
  const raw = (standing: Partial<Standing> | undefined = {}) => {
    const { did, route, stream } = agent()
    const state = {
      standing: standing as Standing | undefined,
      blocked: 0,
      way: { open: route.open } as object | undefined,
      fails: false,
    }
    let changed = () => {}
    const made = RawConnections.make({
      hosts: Hosts.make({ environment: "production", tunnelDomain: "tunnel.example" } as AddressBook),
      routes: {
        standing: (of: string) =>
          state.fails ? Effect.die("a defect") : Effect.sync(() => (of === name ? state.standing : undefined)),
        find: () => Effect.sync(() => state.way),
        open: (_: string, __: Standing, told: () => void) => (
          (changed = told),
          { now: () => state.standing, close: () => did.push("close") }
        ),
      } as never,
      metering: {
        blockedFor: () => state.blocked,
        open: (_: string, __: string, cut: () => void) => route.passage(cut),
      } as never,
      run: Effect.runPromise,
    })
    return { did, state, made, stream, change: () => changed() }
  }
  const settings = (more: object = {}) =>
    ({
      settings: { ...defaultSettings, ...more },
      passwordHash: undefined,
      orgId: "org",
      identityId: "id",
    }) as Partial<Standing>

  it("is refused without a name, a link or a budget, and where the edge would have to read it", async () => {
    const { made, state } = raw(settings({ proxy_protocol: true }))
    const found = async (of = name) => (await made.route(of, "192.0.2.1")) !== undefined
    expect((await made.route(name, "192.0.2.1"))?.proxyProtocol).toBe(true)
    expect(await found("bob")).toBe(false)
    for (const refusing of [{ callers: "signed" }, { allowed_networks: ["198.51.100.0/24"] }]) {
      state.standing = settings(refusing) as Standing
      expect([refusing, await found()]).toEqual([refusing, false])
    }
    state.standing = { ...settings(), passwordHash: Buffer.alloc(32) } as Standing
    expect(await found()).toBe(false)
    state.standing = settings() as Standing
    expect(await found()).toBe(true)
    state.blocked = 1
    expect(await found()).toBe(false)
    state.blocked = 0
    state.way = undefined
    expect(await found()).toBe(false)
  })

  it("ends when the settings change so that they no longer admit it", async () => {
    const { made, state, change, did } = raw(settings())
    const route = (await made.route(name, "192.0.2.1"))!
    let ended = 0
    const leave = route.enter(() => void ended++)
    change()
    expect(ended).toBe(0)
    state.standing = settings({ allowed_networks: ["198.51.100.0/24"] }) as Standing
    change()
    expect(ended).toBe(1)
    state.standing = undefined
    change()
    expect(ended).toBe(2)
    leave()
    expect(did).toEqual(["close"])
  })

  it("of TLS passes through for the names whose agent ends TLS itself", async () => {
    const { made, state, did } = raw(settings({ tls: "passthrough" }))
    const hosts = ["ada.tunnel.example", "bob.tunnel.example", "ada.example"]
    expect(await Promise.all(hosts.map(made.passesThrough))).toEqual([true, false, false])
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      socket.on("error", () => {})
      made.passThrough(socket, hosts[0]!)
    })
    const port = await freePort()
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
    const { socket } = await client(port)
    socket.write("hello")
    await eventually(
      async () => did,
      (all) => all.includes("write hello"),
    )
    expect(did.slice(0, 2)).toEqual([`open ${kind.passthrough} {"peer":"127.0.0.1","sni":"${hosts[0]}"}`, "request"])
    socket.destroy()
    state.way = { open: () => undefined }
    expect(await (await client(port)).closed).toBe("ECONNRESET")
    state.standing = settings({}) as Standing
    state.way = undefined
    expect(await (await client(port)).closed).toBe("ECONNRESET")
    state.fails = true
    expect(await (await client(port)).closed).toBeUndefined()
    state.standing = settings({}) as Standing
    state.fails = false
    expect(await made.passesThrough(hosts[0]!)).toBe(false)
    server.close()
  })
})

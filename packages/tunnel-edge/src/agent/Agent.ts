/**
 * The agent's end of a tunnel: holds links to edges, dials again while it is worth it, and forwards what comes to a local
 * port, or to a handler in this process. A library without Effect, for any program that wants a public address.
 */
import { randomUUID } from "node:crypto"
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { couple } from "../protocol/Couple.ts"
import { type Link, makeLink } from "../protocol/Link.ts"
import { flag, goaway, kind, reset, timing, version } from "../protocol/Manifest.ts"
import { RequestSplitter } from "../protocol/RequestSplitter.ts"
import type { MuxStream } from "../protocol/Mux.ts"
import { type Carrier, dial, NotUnderstood, TunnelRefused } from "./Dial.ts"

export { TunnelRefused } from "./Dial.ts"

export interface PublicAddress {
  readonly hostname: string
  readonly url: string
  readonly tcp_port: number | null
}

export interface TunnelOptions {
  /** An Identity Key, or an Admin Key with `handle`. */
  readonly key: string
  readonly handle?: string
  /** The edge: `https://connect.{tunnel_domain}`, in Development `http://connect.tunnel.localhost:8081`; asked anew each time link `conn` (from 0) is dialled. */
  readonly edge: string | ((conn: number) => string)
  /** Where requests go; loopback unless `host` says otherwise. */
  readonly port?: number
  readonly host?: string
  /** Serves requests in this process, in place of a port. */
  readonly handler?: RequestListener
  /** Raw connections of the TCP port only; requests for the hostname are refused. */
  readonly tcpOnly?: boolean
  /** Links to hold, each with another edge where there are several: 1 to 4, 2 by default. */
  readonly links?: number
  /** `auto` dials `idt/1` first and WebSocket where something in between does not let it through. */
  readonly carrier?: "auto" | "websocket"
  /** A certificate authority to trust besides the system's. */
  readonly ca?: string
  /** What the account shows of this agent. */
  readonly client?: string
  readonly onConnected?: (address: PublicAddress) => void
  readonly onDisconnected?: (reason: string, retryInMillis: number) => void
  /** Each request, and each raw connection, that came through the tunnel. */
  readonly onRequest?: (request: {
    readonly kind: "http" | "tcp" | "tls"
    readonly line: string
    readonly peer: string
  }) => void
}

export interface Tunnel {
  /** The public address, once an edge has accepted a link. Fails when it refuses for good. */
  readonly ready: Promise<PublicAddress>
  /** Ends when the tunnel is over: closed, or refused for good. */
  readonly ended: Promise<void>
  readonly close: () => Promise<void>
}

/** Refusals after which dialling again is pointless. */
const final = new Set([401, 403, 404, 410, 426])
const backOff = { firstMillis: 500, mostMillis: 30_000 }
/** A second link found no edge of its own: there may be one later. */
const otherEdgeMillis = 30_000

interface Dialled {
  readonly link: Link
  readonly closed: Promise<string>
}

const loopback = async (handler: RequestListener) => {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { port: (server.address() as AddressInfo).port, stop: () => (server.closeAllConnections(), server.close()) }
}

const kinds = { [kind.http]: "http", [kind.tcp]: "tcp", [kind.passthrough]: "tls" } as const

export const connectTunnel = (options: TunnelOptions): Tunnel => {
  const instance = randomUUID()
  const wanted = Math.min(4, Math.max(1, options.links ?? 2))
  const host = options.host ?? "127.0.0.1"
  let over = false
  let webSocket = options.carrier === "websocket"
  let localUp = true
  const held = new Set<Link>()
  /** Ends the wait of whoever is about to dial again. */
  const wakes = new Set<() => void>()
  let settleReady: { resolve: (address: PublicAddress) => void; reject: (error: Error) => void }
  const ready = new Promise<PublicAddress>((resolve, reject) => (settleReady = { resolve, reject }))
  ready.catch(() => {})
  const inside = options.handler === undefined ? undefined : loopback(options.handler)

  const local = async (): Promise<{ port: number; host: string }> => {
    if (inside !== undefined) return { port: (await inside).port, host: "127.0.0.1" }
    if (options.port === undefined) throw new Error("a tunnel needs a port or a handler")
    return { port: options.port, host }
  }

  const inFlight = () => [...held].reduce((sum, { mux }) => sum + mux.streams.size, 0)
  const statusOf = () => ({ local: localUp ? "up" : "down", in_flight: inFlight(), version })
  const tellStatus = () => held.forEach((link) => link.status(statusOf()))
  const noteLocal = (up: boolean) => {
    if (up === localUp) return
    localUp = up
    tellStatus()
  }
  const teller = setInterval(tellStatus, timing.pingMillis)
  teller.unref()

  const forward = async (stream: MuxStream, streamKind: number, meta: Record<string, unknown>) => {
    if (!(streamKind in kinds)) return stream.reset(reset.policy)
    if (options.tcpOnly === true && streamKind !== kind.tcp) return stream.reset(reset.local_refused)
    const early: Array<Buffer> = []
    stream.onData = (bytes) => void early.push(bytes)
    let ended = false
    stream.onEnd = () => (ended = true)
    const target = await local()
    // A client that went away at once has nothing to be fetched for.
    if (!stream.isOpen) return
    const socket = connect({ ...target, allowHalfOpen: true })
    socket.setNoDelay(true)
    const refused = (error: NodeJS.ErrnoException) => {
      noteLocal(false)
      stream.reset(reset.local_refused, error.code ?? error.message)
    }
    socket.once("error", refused)
    stream.onReset = () => socket.destroy()
    socket.once("connect", () => {
      noteLocal(true)
      socket.off("error", refused)
      const seen = watch(streamKind as keyof typeof kinds, String(meta["peer"] ?? "unknown"))
      couple(socket, stream, seen === undefined ? {} : { incoming: seen })
      const incoming = stream.onData
      for (const bytes of early.splice(0)) incoming(bytes)
      if (ended) socket.end()
    })
  }

  /** Tells of each request of a connection as it goes by; the edge has judged them already. */
  const watch = (streamKind: keyof typeof kinds, peer: string): ((bytes: Buffer) => void) | undefined => {
    const { onRequest } = options
    if (onRequest === undefined) return undefined
    const name = kinds[streamKind]
    if (name !== "http") {
      onRequest({ kind: name, line: name, peer })
      return undefined
    }
    let opaque = false
    const requests = new RequestSplitter(
      ({ method, target, upgrade }) => {
        onRequest({ kind: "http", line: `${method} ${target}`, peer })
        opaque = upgrade
      },
      () => {},
    )
    return (bytes) => {
      if (opaque) return
      try {
        requests.feed(bytes)
      } catch {
        opaque = true
      }
    }
  }

  /** One link. Resolves once the edge has said hello. */
  const attach = async (conn: number, attempt: number, onGoaway: (reason: number) => void) => {
    const carrier: Carrier = await dial({
      edge: typeof options.edge === "string" ? options.edge : options.edge(conn),
      headers: {
        authorization: `Bearer ${options.key}`,
        ...(options.handle === undefined ? {} : { "svc-tunnel-handle": options.handle }),
        "svc-tunnel-instance": instance,
        "svc-tunnel-conn": String(conn),
        "svc-tunnel-client": options.client ?? "svc-tunnel/0.1.0",
        ...(options.port === undefined
          ? {}
          : { "svc-tunnel-local": `${host === "127.0.0.1" ? "localhost" : host}:${options.port}` }),
      },
      ca: options.ca,
      webSocket,
      offset: conn + attempt,
    })
    return await new Promise<Dialled>((resolve, reject) => {
      let closing: (reason: string) => void = () => {}
      const closed = new Promise<string>((done) => (closing = done))
      const link = makeLink(carrier.duplex, carrier.ahead, false, {
        open: (stream, streamKind, flags, meta) => {
          if ((flags & ~flag.hopped) !== 0) return stream.reset(reset.protocol)
          void forward(stream, streamKind, meta).catch(() => stream.reset(reset.internal))
        },
        hello: (hello) => {
          link.hello({ version })
          link.status(statusOf())
          const first = held.size === 0
          held.add(link)
          const address = hello["public"] as PublicAddress
          settleReady.resolve(address)
          if (first) options.onConnected?.(address)
          resolve({ link, closed })
        },
        goaway: onGoaway,
        close: (reason) => {
          held.delete(link)
          closing(reason)
          reject(new Error(reason))
        },
      })
      carrier.duplex.resume()
    })
  }

  /** The next link is made before this one breaks: what is under way on it may end. */
  const leaveSlowly = (link: Link) => {
    const deadline = Date.now() + timing.drainMillis
    const timer = setInterval(() => {
      const replaced = [...held].some((other) => other !== link)
      if (!over && Date.now() < deadline && !(replaced && link.mux.streams.size === 0)) return
      clearInterval(timer)
      link.close("drained")
    }, 50)
    timer.unref()
  }

  const finish = (why: Error) => {
    if (over) return
    over = true
    settleReady.reject(why)
    for (const link of held) link.close("closed")
    for (const wake of wakes) wake()
  }

  const pause = (millis: number) =>
    new Promise<void>((resolve) => {
      if (over) return resolve()
      const timer = setTimeout(() => wake(), millis)
      const wake = () => {
        clearTimeout(timer)
        wakes.delete(wake)
        resolve()
      }
      wakes.add(wake)
    })

  const keep = async (conn: number) => {
    let failures = 0
    for (let attempt = 0; !over; attempt++) {
      const begun = Date.now()
      let reason: string
      let given: TunnelRefused | undefined
      try {
        let leaving = 0
        let left: () => void = () => {}
        const goes = new Promise<string>((resolve) => (left = () => resolve("the edge is going down")))
        const dialled = await attach(conn, attempt, (why) => {
          leaving = why
          if (why === goaway.replaced) given = new TunnelRefused(409, "replaced", "A newer process holds this tunnel.")
          if (why === goaway.revoked) given = new TunnelRefused(401, "unauthenticated", "The credential was revoked.")
          if (why === goaway.drain) left()
        })
        if (over) dialled.link.close("closed")
        reason = await Promise.race([dialled.closed, goes])
        if (leaving === goaway.drain) {
          leaveSlowly(dialled.link)
          continue
        }
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error)
        if (error instanceof TunnelRefused && final.has(error.status)) given = error
        if (
          options.carrier !== "websocket" &&
          (error instanceof NotUnderstood || (failures > 1 && given === undefined))
        ) {
          webSocket = !webSocket
        }
        if (conn > 0 && error instanceof TunnelRefused && error.code === "tunnel_duplicate_edge") {
          await pause(otherEdgeMillis * (0.5 + Math.random()))
          continue
        }
      }
      if (over) break
      if (given !== undefined) {
        finish(given)
        options.onDisconnected?.(given.message, -1)
        break
      }
      // A link that stood for a while begins anew; full jitter keeps a crowd of agents apart.
      failures = Date.now() - begun > timing.silenceMillis ? 0 : failures + 1
      const wait =
        failures === 0 ? 0 : Math.random() * Math.min(backOff.mostMillis, backOff.firstMillis * 2 ** (failures - 1))
      if (held.size === 0) options.onDisconnected?.(reason, wait)
      await pause(wait)
    }
  }
  /** The others come once the first stands, so that a refusal is told once. */
  const others = ready.then(
    () => Promise.all(Array.from({ length: wanted - 1 }, (_, n) => keep(n + 1))),
    () => {},
  )
  const ended = Promise.all([keep(0), others]).then(() => {
    clearInterval(teller)
    void inside?.then(({ stop }) => stop())
  })

  return {
    ready,
    ended,
    close: async () => {
      finish(new Error("closed"))
      await ended
    },
  }
}

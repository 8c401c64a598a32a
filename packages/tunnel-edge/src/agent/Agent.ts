/**
 * The agent's end of a tunnel: holds links to edges, dials again while it is worth it, and forwards what comes to a local
 * port, or to a handler in this process. A library without Effect, for any program that wants a public address.
 */
import { randomUUID } from "node:crypto"
import { type Link, type LinkEvents, makeLink } from "../protocol/Link.ts"
import { flag, goaway, reset, timing, version } from "../protocol/Manifest.ts"
import { type Carrier, dial, NotUnderstood, TunnelRefused } from "./Dial.ts"
import { type Local, loopbackHost, makeLocalEnd } from "./LocalEnd.ts"

export { TunnelRefused } from "./Dial.ts"

export interface PublicAddress {
  readonly hostname: string
  readonly url: string
  readonly tcp_port: number | null
}

export interface TunnelOptions extends Local {
  /** An Identity Key, or an Admin Key with `handle`. */
  readonly key: string
  readonly handle?: string
  /** The edge: `https://connect.{tunnel_domain}`, in Development `http://connect.tunnel.localhost:8081`; asked anew each time link `conn` (from 0) is dialled. */
  readonly edge: string | ((conn: number) => string)
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
  /** What the edge has to say to who runs the agent. */
  readonly onNotice?: (text: string) => void
}

export interface Tunnel {
  /** The public address, once an edge has accepted a link. Fails when it refuses for good. */
  readonly ready: Promise<PublicAddress>
  /** Ends when the tunnel is over: with why it was refused for good, or with nothing where it was closed. */
  readonly ended: Promise<TunnelRefused | undefined>
  /** Closes at once; what is under way is cut. */
  readonly close: () => Promise<void>
  /**
   * Takes nothing new, lets end what is under way, for so many milliseconds at most (30 s), and closes. `onTold` runs once
   * the edges know: from then on a request is answered as the last of its connection.
   */
  readonly drain: (millis?: number, onTold?: () => void) => Promise<void>
  /** Requests and connections that are under way. */
  readonly activeCount: () => number
}

/** Refusals after which dialling again is pointless. */
const final = new Set([401, 403, 404, 410, 426])
const backOff = { firstMillis: 500, mostMillis: 30_000 }
/** A second link found no edge of its own: there may be one later. */
const otherEdgeMillis = 30_000
/** What is under way when the agent leaves has this long to end. */
const leaveMillis = 30_000
/** An edge that does not answer for this long is not waited for before the agent leaves. */
const tellMillis = 1_000

interface Dialled {
  readonly link: Link
  readonly closed: Promise<string>
}

export const connectTunnel = (options: TunnelOptions): Tunnel => {
  const instance = randomUUID()
  const wanted = Math.min(4, Math.max(1, options.links ?? 2))
  const host = options.host ?? loopbackHost
  /** No link is dialled any more. */
  let over = false
  let refusedFor: TunnelRefused | undefined
  let webSocket = options.carrier === "websocket"
  const held = new Set<Link>()
  /** Ends the wait of whoever is about to dial again. */
  const wakes = new Set<() => void>()
  let settleReady: { resolve: (address: PublicAddress) => void; reject: (error: Error) => void }
  const ready = new Promise<PublicAddress>((resolve, reject) => (settleReady = { resolve, reject }))
  ready.catch(() => {})
  const inFlight = () => [...held].reduce((sum, { mux }) => sum + mux.streams.size, 0)
  const statusOf = () => ({ local: local.isUp() ? "up" : "down", in_flight: inFlight(), version })
  const tellStatus = () => held.forEach((link) => link.status(statusOf()))
  const local = makeLocalEnd(options, tellStatus)
  const teller = setInterval(tellStatus, timing.pingMillis)
  teller.unref()

  /** One link. Resolves once the edge has said hello. */
  const attach = async (conn: number, attempt: number, onGoaway: LinkEvents["goaway"]) => {
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
          : { "svc-tunnel-local": `${host === loopbackHost ? "localhost" : host}:${options.port}` }),
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
          void local.forward(stream, streamKind, meta).catch(() => stream.reset(reset.internal))
        },
        hello: (hello) => {
          link.hello({ version })
          link.status(statusOf())
          const first = held.size === 0
          held.add(link)
          const address = hello["public"] as PublicAddress
          settleReady.resolve(address)
          if (first) {
            options.onConnected?.(address)
            void local.probe().catch(() => {})
          }
          resolve({ link, closed })
        },
        goaway: onGoaway,
        status: ({ notice }) => {
          if (typeof notice === "string") options.onNotice?.(notice)
        },
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
    const deadline = performance.now() + timing.drainMillis
    const timer = setInterval(() => {
      const replaced = [...held].some((other) => other !== link)
      if (!isClosed && performance.now() < deadline && !(replaced && link.mux.streams.size === 0)) return
      clearInterval(timer)
      link.close("drained")
    }, 50)
    timer.unref()
  }

  let isClosed = false
  const finish = (why: Error) => {
    if (isClosed) return
    isClosed = over = true
    if (why instanceof TunnelRefused) refusedFor = why
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
      const begun = performance.now()
      let reason: string
      let given: TunnelRefused | undefined
      try {
        let leaving = 0
        let left: () => void = () => {}
        const goes = new Promise<string>((resolve) => (left = () => resolve("the edge is going down")))
        const dialled = await attach(conn, attempt, (why, { successor }) => {
          leaving = why
          // An edge that names nobody does not know of another process: it lost the lease of this one.
          if (why === goaway.replaced && successor !== undefined)
            given = new TunnelRefused(409, "replaced", "A newer process holds this tunnel.")
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
      failures = performance.now() - begun > timing.silenceMillis ? 0 : failures + 1
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
    local.stop()
    return refusedFor
  })
  const close = async () => {
    finish(new Error("closed"))
    await ended
  }

  return {
    ready,
    ended,
    close,
    drain: async (millis = leaveMillis, onTold) => {
      over = true
      for (const wake of wakes) wake()
      for (const link of held) link.goaway(goaway.drain)
      let patience: NodeJS.Timeout | undefined
      await Promise.race([
        Promise.all([...held].map((link) => link.taken())),
        new Promise((resolve) => (patience = setTimeout(resolve, tellMillis))),
      ])
      clearTimeout(patience)
      onTold?.()
      await local.settle(millis)
      await close()
    },
    activeCount: local.activeCount,
  }
}

/**
 * The agent side of a tunnel. Holds one or more links to edges, reconnects with backoff until an edge refuses
 * permanently, and forwards each stream to a local port or to a handler in this process. Does not use Effect, so that
 * any program can embed it.
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
  /**
   * The edge: `https://connect.{tunnel_domain}`, in Development `http://connect.tunnel.localhost:8081`. A function is
   * called before each dial with the number of the link, starting at 0.
   */
  readonly edge: string | ((conn: number) => string)
  /** Number of links to hold, from 1 to 4 (default 2). Each link connects to a different edge if there are several. */
  readonly links?: number
  /** `auto` tries `idt/1` first and switches to WebSocket if an intermediary rejects the upgrade. */
  readonly carrier?: "auto" | "websocket"
  /** PEM certificate authority to trust in addition to the system's. */
  readonly ca?: string
  /** Name and version that the console shows for this agent. */
  readonly client?: string
  readonly onConnected?: (address: PublicAddress) => void
  readonly onDisconnected?: (reason: string, retryInMillis: number) => void
  /** Called with a notice from the edge for the operator of the agent. */
  readonly onNotice?: (text: string) => void
}

export interface Tunnel {
  /** Resolves with the public address once an edge has accepted a link. Rejects if the edge refuses permanently. */
  readonly ready: Promise<PublicAddress>
  /** Resolves when the tunnel is over: with the refusal if it is permanent, or with undefined after `close`. */
  readonly ended: Promise<TunnelRefused | undefined>
  /** Closes all links immediately and aborts requests in flight. */
  readonly close: () => Promise<void>
  /**
   * Stops accepting new requests, waits up to `millis` milliseconds (default 30 s) for requests in flight, then closes.
   * `onTold` is called once the edges know; from then on every response closes its connection.
   */
  readonly drain: (millis?: number, onTold?: () => void) => Promise<void>
  /** Returns the number of requests and connections in flight. */
  readonly activeCount: () => number
}

/** Status codes after which redialling is pointless. */
const final = new Set([401, 403, 404, 410, 426])
const backOff = { firstMillis: 500, mostMillis: 30_000 }
/**
 * Delay before an additional link looks for another edge after all reachable edges already had a link of this agent.
 */
const otherEdgeMillis = 30_000
/** Default time that `drain` gives requests in flight. */
const leaveMillis = 30_000
/** Longest time that `drain` waits for edges to acknowledge the announcement. */
const tellMillis = 1_000

interface Dialled {
  readonly link: Link
  readonly closed: Promise<string>
}

export const connectTunnel = (options: TunnelOptions): Tunnel => {
  const instance = randomUUID()
  const wanted = Math.min(4, Math.max(1, options.links ?? 2))
  const host = options.host ?? loopbackHost
  /** No new link is dialled once this is set. */
  let over = false
  let refusedFor: TunnelRefused | undefined
  let webSocket = options.carrier === "websocket"
  const held = new Set<Link>()
  /** Callbacks that end the delays before a redial. */
  const wakes = new Set<() => void>()
  let settleReady: { resolve: (address: PublicAddress) => void; reject: (error: Error) => void }
  const ready = new Promise<PublicAddress>((resolve, reject) => (settleReady = { resolve, reject }))
  ready.catch(() => {})
  const tellStatus = (link: Link) => link.status({ local: local.isUp() ? "up" : "down" })
  const local = makeLocalEnd(options, () => held.forEach(tellStatus))

  /** Opens one link. Resolves after the edge has sent HELLO. */
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
          tellStatus(link)
          // A link that is accepted while the tunnel closes is closed too.
          const first = held.size === 0 && !over
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

  /** Closes a link of a draining edge after its replacement is connected and its streams have ended. */
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
          // Without a named successor, the edge has only lost the lease of this process, so the agent dials again.
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
      // The backoff starts over after a link was stable. Full jitter spreads the redials of many agents.
      failures = performance.now() - begun > timing.silenceMillis ? 0 : failures + 1
      const wait =
        failures === 0 ? 0 : Math.random() * Math.min(backOff.mostMillis, backOff.firstMillis * 2 ** (failures - 1))
      if (held.size === 0) options.onDisconnected?.(reason, wait)
      await pause(wait)
    }
  }
  /** Additional links are dialled after the first one is accepted, so that a refusal is reported once. */
  const others = ready.then(
    () => Promise.all(Array.from({ length: wanted - 1 }, (_, n) => keep(n + 1))),
    () => {},
  )
  const ended = Promise.all([keep(0), others]).then(() => {
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

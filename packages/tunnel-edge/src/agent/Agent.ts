/**
 * The agent's end of a tunnel: dials the edge, keeps dialling while it is worth it, and forwards what comes to a local
 * port, or to a handler in this process. A library without Effect, for any program that wants a public address.
 */
import { randomUUID } from "node:crypto"
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { connect as connectSecure } from "node:tls"
import { couple } from "../protocol/Couple.ts"
import { type Link, makeLink } from "../protocol/Link.ts"
import { flag, goaway, kind, path, reset, timing, upgradeToken } from "../protocol/Manifest.ts"
import type { MuxStream } from "../protocol/Mux.ts"

export interface PublicAddress {
  readonly hostname: string
  readonly url: string
  readonly tcp_port: number | null
}

export interface TunnelOptions {
  /** An Identity Key, or an Admin Key with `handle`. */
  readonly key: string
  readonly handle?: string
  /** The edge: `https://connect.{tunnel_domain}`, in Development `http://connect.tunnel.localhost:8081`; asked anew for each link. */
  readonly edge: string | (() => string)
  /** Where requests go; loopback unless `host` says otherwise. */
  readonly port?: number
  readonly host?: string
  /** Serves requests in this process, in place of a port. */
  readonly handler?: RequestListener
  /** A certificate authority to trust besides the system's. */
  readonly ca?: string
  readonly client?: string
  readonly onConnected?: (address: PublicAddress) => void
  readonly onDisconnected?: (reason: string, retryInMillis: number) => void
  /** The first line of each connection that came through the tunnel. */
  readonly onRequest?: (request: {
    readonly kind: "http" | "tcp"
    readonly line: string
    readonly peer: string
  }) => void
}

export interface Tunnel {
  /** The public address, once the edge has accepted the link. Fails when it refuses for good. */
  readonly ready: Promise<PublicAddress>
  /** Ends when the tunnel is over: closed, or refused for good. */
  readonly ended: Promise<void>
  readonly close: () => Promise<void>
}

/** The edge will not have this agent, now or later. */
export class TunnelRefused extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Refusals after which dialling again is pointless. */
const final = new Set([401, 403, 404, 410, 426])
const backOff = { firstMillis: 500, mostMillis: 30_000 }
const dialMillis = 10_000
/** What is under way on the link of an edge that goes down has this long to end. */
const drainMillis = 180_000

interface Dialled {
  readonly link: Link
  readonly closed: Promise<string>
}

const loopback = async (handler: RequestListener) => {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { port: (server.address() as AddressInfo).port, stop: () => (server.closeAllConnections(), server.close()) }
}

export const connectTunnel = (options: TunnelOptions): Tunnel => {
  const instance = randomUUID()
  let over = false
  let current: Dialled | undefined
  let wake: (() => void) | undefined
  let settleReady: { resolve: (address: PublicAddress) => void; reject: (error: Error) => void }
  const ready = new Promise<PublicAddress>((resolve, reject) => (settleReady = { resolve, reject }))
  ready.catch(() => {})
  const inside = options.handler === undefined ? undefined : loopback(options.handler)

  const local = async (): Promise<{ port: number; host: string }> => {
    if (inside !== undefined) return { port: (await inside).port, host: "127.0.0.1" }
    if (options.port === undefined) throw new Error("a tunnel needs a port or a handler")
    return { port: options.port, host: options.host ?? "127.0.0.1" }
  }

  const forward = async (stream: MuxStream, streamKind: number, meta: Record<string, unknown>) => {
    if (streamKind !== kind.http && streamKind !== kind.tcp) return stream.reset(reset.policy)
    const early: Array<Buffer> = []
    stream.onData = (bytes) => void early.push(bytes)
    let ended = false
    stream.onEnd = () => (ended = true)
    const { port, host } = await local()
    const socket = connect({ port, host, allowHalfOpen: true })
    socket.setNoDelay(true)
    socket.once("error", (error: NodeJS.ErrnoException) =>
      stream.reset(reset.local_refused, error.code ?? error.message),
    )
    stream.onReset = () => socket.destroy()
    socket.once("connect", () => {
      const peer = String(meta["peer"] ?? "unknown")
      let told = false
      couple(socket, stream, {
        incoming: (bytes) => {
          if (told) return
          told = true
          tell(streamKind, bytes, peer)
        },
      })
      const incoming = stream.onData
      for (const bytes of early.splice(0)) incoming(bytes)
      if (ended) socket.end()
    })
  }

  const tell = (streamKind: number, bytes: Buffer, peer: string) => {
    const line =
      streamKind === kind.http
        ? bytes
            .toString("latin1", 0, 500)
            .split("\r\n")[0]!
            .replace(/ HTTP\/1\.1$/, "")
        : "tcp"
    options.onRequest?.({ kind: streamKind === kind.http ? "http" : "tcp", line, peer })
  }

  /** One link. Resolves once the edge has said hello. */
  const dial = (onGoaway: (reason: number) => void) =>
    new Promise<Dialled>((resolve, reject) => {
      const url = new URL(typeof options.edge === "string" ? options.edge : options.edge())
      const secure = url.protocol === "https:"
      const port = Number(url.port === "" ? (secure ? 443 : 80) : url.port)
      // `*.localhost` is this machine (RFC 6761 section 6.3), whatever its resolver says.
      const host = url.hostname.endsWith("localhost") ? "127.0.0.1" : url.hostname
      const socket: Socket = secure
        ? connectSecure({
            host,
            port,
            servername: url.hostname,
            ALPNProtocols: ["http/1.1"],
            ...(options.ca === undefined ? {} : { ca: options.ca }),
          })
        : connect({ host, port })
      const fail = (error: Error) => {
        socket.destroy()
        reject(error)
      }
      socket.setTimeout(dialMillis, () => fail(new Error("the edge does not answer")))
      socket.once("error", fail)
      socket.once("close", () => fail(new Error("the edge closed the connection")))
      socket.once(secure ? "secureConnect" : "connect", () =>
        socket.write(
          [
            `GET ${path} HTTP/1.1`,
            `Host: ${url.host}`,
            "Connection: Upgrade",
            `Upgrade: ${upgradeToken}`,
            `Authorization: Bearer ${options.key}`,
            ...(options.handle === undefined ? [] : [`svc-tunnel-handle: ${options.handle}`]),
            `svc-tunnel-instance: ${instance}`,
            `svc-tunnel-client: ${options.client ?? "svc"}`,
            "",
            "",
          ].join("\r\n"),
        ),
      )
      let kept = Buffer.alloc(0)
      const answered = (chunk: Buffer) => {
        kept = Buffer.concat([kept, chunk])
        const end = kept.indexOf("\r\n\r\n")
        if (end < 0) return
        const head = kept.toString("latin1", 0, end)
        const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
        if (status !== 101) {
          const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
          if (kept.length < end + 4 + length) return
          return fail(refusalOf(status, kept.toString("utf8", end + 4)))
        }
        socket.removeAllListeners()
        let closing: (reason: string) => void = () => {}
        const closed = new Promise<string>((done) => (closing = done))
        const link = makeLink(socket, kept.subarray(end + 4), false, {
          open: (stream, streamKind, flags, meta) => {
            if ((flags & ~flag.hopped) !== 0) return stream.reset(reset.protocol)
            void forward(stream, streamKind, meta).catch(() => stream.reset(reset.internal))
          },
          hello: (hello) => {
            link.hello({ version: 1 })
            const address = hello["public"] as PublicAddress
            settleReady.resolve(address)
            options.onConnected?.(address)
            resolve({ link, closed })
          },
          goaway: onGoaway,
          close: (reason) => {
            closing(reason)
            reject(new Error(reason))
          },
        })
      }
      socket.on("data", answered)
    })

  /** The next link is made before this one breaks: what is under way on it may end. */
  const leaveSlowly = (link: Link) => {
    const deadline = Date.now() + drainMillis
    const timer = setInterval(() => {
      const replaced = current !== undefined && current.link !== link
      if (!over && Date.now() < deadline && !(replaced && link.mux.streams.size === 0)) return
      clearInterval(timer)
      link.close("drained")
    }, 50)
    timer.unref()
  }

  const keep = async () => {
    let failures = 0
    while (!over) {
      const begun = Date.now()
      let reason: string
      let finalReason: TunnelRefused | undefined
      let draining = false
      try {
        let leaving = 0
        let left: () => void = () => {}
        const goes = new Promise<string>((resolve) => (left = () => resolve("the edge is going down")))
        const dialled = await dial((why) => {
          leaving = why
          if (why === goaway.replaced)
            finalReason = new TunnelRefused(409, "replaced", "A newer process holds this tunnel.")
          if (why === goaway.revoked)
            finalReason = new TunnelRefused(401, "unauthenticated", "The credential was revoked.")
          if (why === goaway.drain) left()
        })
        current = dialled
        failures = 0
        reason = await Promise.race([dialled.closed, goes])
        draining = leaving === goaway.drain
        if (draining) leaveSlowly(dialled.link)
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error)
        if (error instanceof TunnelRefused && final.has(error.status)) finalReason = error
      }
      if (over) break
      if (finalReason !== undefined) {
        settleReady.reject(finalReason)
        options.onDisconnected?.(finalReason.message, -1)
        break
      }
      // A link that stood for a while begins anew; full jitter keeps a crowd of agents apart.
      if (draining) continue
      failures = Date.now() - begun > timing.silenceMillis ? 0 : failures + 1
      const wait =
        failures === 0 ? 0 : Math.random() * Math.min(backOff.mostMillis, backOff.firstMillis * 2 ** (failures - 1))
      options.onDisconnected?.(reason, wait)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait)
        wake = () => (clearTimeout(timer), resolve())
      })
    }
  }
  const ended = keep().finally(() => {
    void inside?.then(({ stop }) => stop())
  })

  return {
    ready,
    ended,
    close: async () => {
      over = true
      settleReady.reject(new Error("closed"))
      current?.link.close("closed")
      wake?.()
      await ended
    },
  }
}

const refusalOf = (status: number, body: string): Error => {
  try {
    const { code, detail } = JSON.parse(body) as { code: string; detail: string }
    return new TunnelRefused(status, code, detail)
  } catch {
    return new TunnelRefused(status, "refused", `the edge answered ${status}`)
  }
}

/**
 * Connects each stream of an agent to the local port, or to a handler in this process. Tracks whether the local port
 * accepts connections and which streams are active, so that an agent can drain before it exits.
 */
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { splice } from "../protocol/Splice.ts"
import { kind, reset } from "../protocol/Manifest.ts"
import type { MuxStream } from "../protocol/Mux.ts"
import { RequestSplitter } from "../protocol/RequestSplitter.ts"

export interface Local {
  /** Local port that receives requests, on the loopback address unless `host` is set. */
  readonly port?: number
  readonly host?: string
  /** Handles requests in this process instead of a port. */
  readonly handler?: RequestListener
  /** Accepts raw connections of the TCP port only and refuses HTTP requests. */
  readonly tcpOnly?: boolean
  /** Called for each request and each raw connection that arrives through the tunnel. */
  readonly onRequest?: (request: {
    readonly kind: "http" | "tcp" | "tls"
    readonly line: string
    readonly peer: string
  }) => void
  /**
   * Called when the local port stops or resumes accepting connections; `reason` is the system's error code
   * (`ECONNREFUSED`).
   */
  readonly onLocal?: (isUp: boolean, reason: string) => void
}

export const loopbackHost = "127.0.0.1"
const kinds = { [kind.http]: "http", [kind.tcp]: "tcp", [kind.passthrough]: "tls" } as const

/** A stream without a pending response counts as idle after this time without traffic. */
const quietMillis = 500
/** Edges may still open streams within this time after the agent announced that it leaves; those streams are served. */
const noticeMillis = 200
const stepMillis = 50

/** Shared read buffer of the local connections. Its content is copied within the same turn. */
const arrived = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Without `onread`, Node allocates 64 KB outside of the heap for each read of the link that follows a cleartext read,
 * and then runs several full collections per second.
 */
const open = (to: { readonly port: number; readonly host: string }): Socket => {
  const socket: Socket = connect({
    ...to,
    allowHalfOpen: true,
    onread: {
      buffer: arrived,
      callback: (bytes) => socket.emit("data", Buffer.from(arrived.subarray(0, bytes))),
    },
  })
  return socket
}

/** A stream that is spliced with a local connection. */
interface ActiveStream {
  readonly stream: MuxStream
  readonly socket: Socket
  /** A request was forwarded and its response has not started. */
  isAwaited: boolean
  /** Whether bytes passed since the last check. */
  moved: boolean
  movedAt: number
}

const loopback = async (handler: RequestListener) => {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, loopbackHost, resolve))
  return { port: (server.address() as AddressInfo).port, stop: () => (server.closeAllConnections(), server.close()) }
}

export const makeLocalEnd = (options: Local, onChange: () => void) => {
  const host = options.host ?? loopbackHost
  const inside = options.handler === undefined ? undefined : loopback(options.handler)
  const passing = new Set<ActiveStream>()
  let isUp = true
  /** Number of streams whose local connection is still being established. */
  let opening = 0

  const target = async (): Promise<{ port: number; host: string }> => {
    if (inside !== undefined) return { port: (await inside).port, host: loopbackHost }
    if (options.port === undefined) throw new Error("a tunnel needs a port or a handler")
    return { port: options.port, host }
  }

  const note = (up: boolean, reason = "") => {
    if (up === isUp) return
    isUp = up
    options.onLocal?.(up, reason)
    onChange()
  }

  /** Reports each request of a connection to `onRequest`. The edge has already validated the requests. */
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
      ({ method, target: of, upgrade }) => {
        onRequest({ kind: "http", line: `${method} ${of}`, peer })
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

  const join = (stream: MuxStream, socket: Socket, streamKind: keyof typeof kinds, peer: string) => {
    const seen = watch(streamKind, peer)
    const one: ActiveStream = { stream, socket, isAwaited: false, moved: true, movedAt: 0 }
    passing.add(one)
    socket.on("close", () => passing.delete(one))
    socket.on("data", () => {
      one.isAwaited = false
      one.moved = true
    })
    splice(socket, stream, {
      incoming: (bytes) => {
        one.isAwaited = streamKind === kind.http
        one.moved = true
        seen?.(bytes)
      },
    })
  }

  const forward = async (stream: MuxStream, streamKind: number, meta: Record<string, unknown>) => {
    if (!(streamKind in kinds)) return stream.reset(reset.policy)
    if (options.tcpOnly === true && streamKind !== kind.tcp) return stream.reset(reset.local_refused)
    const early: Array<Buffer> = []
    stream.onData = (bytes) => void early.push(bytes)
    let ended = false
    stream.onEnd = () => (ended = true)
    const to = await target()
    // The client may have disconnected before the local connection was opened.
    if (!stream.isOpen) return
    const socket = open(to)
    opening++
    // A client that leaves destroys the socket, which then emits neither `connect` nor `error`.
    const opened = () => {
      opening--
      socket.off("connect", opened).off("close", opened)
    }
    socket.on("connect", opened).on("close", opened)
    socket.setNoDelay(true)
    const refused = (error: NodeJS.ErrnoException) => {
      note(false, error.code ?? error.message)
      stream.reset(reset.local_refused, error.code ?? error.message)
    }
    socket.once("error", refused)
    stream.onReset = () => socket.destroy()
    socket.once("connect", () => {
      note(true)
      socket.off("error", refused)
      join(stream, socket, streamKind as keyof typeof kinds, String(meta["peer"] ?? "unknown"))
      const incoming = stream.onData
      for (const bytes of early.splice(0)) incoming(bytes)
      if (ended) socket.end()
    })
  }

  return {
    forward,
    isUp: () => isUp,

    /** Checks whether the local port accepts connections before the first request arrives. */
    probe: async (): Promise<void> => {
      if (inside !== undefined) return
      const socket = connect(await target())
      socket.once("error", (error: NodeJS.ErrnoException) => note(false, error.code ?? error.message))
      socket.once("connect", () => {
        note(true)
        socket.destroy()
      })
    },

    /** Waits until every request in flight has a response, and closes idle streams. */
    settle: async (millis: number): Promise<void> => {
      const begun = performance.now()
      const deadline = begun + millis
      const isOver = () => passing.size + opening === 0 && performance.now() - begun >= noticeMillis
      while (!isOver() && performance.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, stepMillis))
        for (const one of passing) {
          if (one.moved) one.movedAt = performance.now()
          one.moved = false
          if (one.isAwaited || performance.now() - one.movedAt < quietMillis) continue
          // Data that the local server sends after this point has no recipient.
          one.socket.removeAllListeners("data").pause()
          one.stream.end()
          passing.delete(one)
        }
      }
    },
    activeCount: () => passing.size + opening,
    stop: (): void => void inside?.then(({ stop }) => stop()),
  }
}

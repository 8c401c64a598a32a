/**
 * The agent's local end: each stream becomes a connection to the local port, or to a handler in this process. It knows
 * whether that answers, and what is under way, so that an agent which leaves can wait for it.
 */
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { splice } from "../protocol/Splice.ts"
import { kind, reset } from "../protocol/Manifest.ts"
import type { MuxStream } from "../protocol/Mux.ts"
import { RequestSplitter } from "../protocol/RequestSplitter.ts"

export interface Local {
  /** Where requests go; loopback unless `host` says otherwise. */
  readonly port?: number
  readonly host?: string
  /** Serves requests in this process, in place of a port. */
  readonly handler?: RequestListener
  /** Raw connections of the TCP port only; requests for the hostname are refused. */
  readonly tcpOnly?: boolean
  /** Each request, and each raw connection, that came through the tunnel. */
  readonly onRequest?: (request: {
    readonly kind: "http" | "tcp" | "tls"
    readonly line: string
    readonly peer: string
  }) => void
  /** The local port stopped answering, or answers again; `reason` is the system's (`ECONNREFUSED`). */
  readonly onLocal?: (isUp: boolean, reason: string) => void
}

export const loopbackHost = "127.0.0.1"
const kinds = { [kind.http]: "http", [kind.tcp]: "tcp", [kind.passthrough]: "tls" } as const

/** A stream that was answered last, and has nothing to say for this long, is between requests. */
const quietMillis = 500
/** The edge has this long to hear that nothing new is taken; what it opened meanwhile is served. */
const noticeMillis = 200
const stepMillis = 50

/** What a local connection brings, until it is copied, in the same turn. */
const arrived = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Left to itself, Node takes 64 KB outside of its heap for each read of the link that comes behind one in the clear, and
 * collects the whole heap several times a second for that: reads in the clear have a buffer of ours.
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

/** A stream that is joined to a local connection. */
interface ActiveStream {
  readonly stream: MuxStream
  readonly socket: Socket
  /** A request went in, and nothing of an answer has come since. */
  isAwaited: boolean
  /** Bytes passed since it was looked at last. */
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
  /** Streams whose local connection is being made. */
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
    // A client that went away at once has nothing to be fetched for.
    if (!stream.isOpen) return
    const socket = open(to)
    opening++
    const opened = () => void opening--
    socket.once("connect", opened).once("error", opened)
    socket.setNoDelay(true)
    const refused = (error: NodeJS.ErrnoException) => {
      note(false, error.code ?? error.message)
      stream.reset(reset.local_refused, error.code ?? error.message)
    }
    socket.once("error", refused)
    stream.onReset = () => socket.destroy()
    socket.once("connect", () => {
      note(true)
      socket.off("error", refused).off("error", opened)
      join(stream, socket, streamKind as keyof typeof kinds, String(meta["peer"] ?? "unknown"))
      const incoming = stream.onData
      for (const bytes of early.splice(0)) incoming(bytes)
      if (ended) socket.end()
    })
  }

  return {
    forward,
    isUp: () => isUp,

    /** Looks whether anything answers, before somebody asks. */
    probe: async (): Promise<void> => {
      if (inside !== undefined) return
      const socket = connect(await target())
      socket.once("error", (error: NodeJS.ErrnoException) => note(false, error.code ?? error.message))
      socket.once("connect", () => {
        note(true)
        socket.destroy()
      })
    },

    /** Waits until every request that is under way was answered, and ends what is between requests. */
    settle: async (millis: number): Promise<void> => {
      const begun = performance.now()
      const deadline = begun + millis
      for (const one of passing) one.movedAt = begun
      const isOver = () => passing.size + opening === 0 && performance.now() - begun >= noticeMillis
      while (!isOver() && performance.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, stepMillis))
        for (const one of passing) {
          if (one.moved) one.movedAt = performance.now()
          one.moved = false
          if (one.isAwaited || performance.now() - one.movedAt < quietMillis) continue
          // What it might say from here on is nobody's any more.
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

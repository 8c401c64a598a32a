/** Runs a {@link Mux} over a socket: carries its bytes, sends keep-alive pings and closes dead links. */
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { frame, goaway, type GoawayReason, limits, timing } from "./Manifest.ts"
import { Mux, type MuxStream, ProtocolError } from "./Mux.ts"

export interface LinkEvents {
  readonly open: (stream: MuxStream, kind: number, flags: number, meta: Record<string, unknown>) => void
  readonly hello: (hello: Record<string, unknown>) => void
  readonly goaway: (reason: number, more: Record<string, unknown>) => void
  /** Receives the agent's STATUS. */
  readonly status?: (status: Record<string, unknown>) => void
  /** Called once, with the reason of the close. */
  readonly close: (reason: string) => void
}

export interface Link {
  readonly mux: Mux
  readonly hello: (hello: object) => void
  readonly goaway: (reason: GoawayReason, more?: object) => void
  /** Resolves when the peer has processed everything sent before, or when the link is closed. */
  readonly taken: () => Promise<void>
  readonly status: (status: object) => void
  readonly close: (reason: string) => void
}

/** Size of reason, last stream and deadline in a GOAWAY; JSON follows. */
const goawayBytes = 10

const json = (payload: Buffer): Record<string, unknown> => {
  if (payload.length === 0) return {}
  try {
    const value: unknown = JSON.parse(payload.toString("utf8"))
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value }
  } catch {
    // Anything but a JSON object is a protocol error.
  }
  throw new ProtocolError("metadata that is no JSON object")
}

/**
 * Creates a link. `head` contains the bytes received with the upgrade; `opensOdd` is true for the side that faces the
 * public.
 */
export const makeLink = (socket: Duplex, head: Buffer, opensOdd: boolean, events: LinkEvents): Link => {
  let closed = false
  const mux = new Mux(
    {
      write: (chunks) => {
        if (chunks.length === 1) return socket.write(chunks[0]!)
        socket.cork()
        for (const chunk of chunks) socket.write(chunk)
        socket.uncork()
        return !socket.writableNeedDrain
      },
    },
    opensOdd,
    {
      open: (stream, kind, flags, meta) => events.open(stream, kind, flags, json(meta)),
      control: (type, payload) => {
        if (type === frame.hello) events.hello(json(payload))
        else if (type === frame.status) events.status?.(json(payload))
        else if (type === frame.goaway)
          events.goaway(payload.length >= 2 ? payload.readUInt16BE(0) : 0, json(payload.subarray(goawayBytes)))
      },
    },
  )

  const close = (reason: string) => {
    if (closed) return
    closed = true
    clearInterval(keeper)
    mux.close()
    if (socket instanceof Socket) socket.destroySoon()
    else socket.end()
    events.close(reason)
  }
  const take = (chunk: Buffer) => {
    try {
      mux.receive(chunk)
      // Only replies to control frames accumulate like this: the peer keeps sending and does not read.
      if (socket.writableLength > limits.queuedBytes) close("takes no answers")
    } catch (error) {
      close(error instanceof ProtocolError ? `protocol: ${error.message}` : String(error))
    }
  }

  let heardAt = performance.now()
  let pingedAt = heardAt
  let lookedAt = heardAt
  /** When the ping was sent whose reply is due because streams are open. */
  let askedAt: number | undefined
  const keeper = setInterval(() => {
    const now = performance.now()
    // This process was suspended and has not read yet what the peer sent.
    const isLate = now - lookedAt >= timing.quietMillis
    lookedAt = now
    if (isLate) return
    if (mux.heard) {
      heardAt = now
      askedAt = undefined
    }
    mux.heard = false
    if (now - heardAt >= timing.silenceMillis) return close("silence")
    if (mux.blocked) {
      if (now - mux.blockedSince >= timing.stalledMillis) close("stalled")
      return
    }
    if (mux.streams.size > 0 && now - heardAt >= timing.quietMillis) {
      if (askedAt !== undefined) return now - askedAt >= timing.answerMillis ? close("silence") : undefined
      askedAt = now
    } else if (now - pingedAt < timing.pingMillis) return
    pingedAt = now
    mux.ping()
  }, timing.quietMillis / 4)
  keeper.unref()
  mux.ping()

  if (socket instanceof Socket) {
    socket.setNoDelay(true)
    socket.setTimeout(0)
  }
  socket.on("data", take)
  socket.on("drain", () => mux.drained())
  socket.on("error", (error) => close(error.message))
  // Links have no half-close: the edge's sockets would otherwise stay open, because they allow half-close for the
  // public.
  socket.on("end", () => close("closed"))
  socket.on("close", () => close("closed"))
  // Deferred, so that the caller has its link before the first event.
  if (head.length > 0) queueMicrotask(() => take(head))

  return {
    mux,
    status: (status) => mux.send(frame.status, 0, Buffer.from(JSON.stringify(status))),
    hello: (hello) => mux.send(frame.hello, 0, Buffer.from(JSON.stringify(hello))),
    taken: () => new Promise((resolve) => mux.ping(resolve)),
    goaway: (reason, more) => {
      const payload = Buffer.alloc(goawayBytes)
      payload.writeUInt16BE(reason, 0)
      payload.writeUInt32BE(reason === goaway.drain ? timing.drainMillis : 0, 6)
      mux.send(
        frame.goaway,
        0,
        more === undefined ? payload : Buffer.concat([payload, Buffer.from(JSON.stringify(more))]),
      )
    },
    close,
  }
}

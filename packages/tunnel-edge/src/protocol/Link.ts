/** A mux over a socket: the carrier, the pings that keep it alive, and its end. */
import { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { frame, goaway, type GoawayReason, limits, timing } from "./Manifest.ts"
import { Mux, type MuxStream, ProtocolError } from "./Mux.ts"

export interface LinkEvents {
  readonly open: (stream: MuxStream, kind: number, flags: number, meta: Record<string, unknown>) => void
  readonly hello: (hello: Record<string, unknown>) => void
  readonly goaway: (reason: number, more: Record<string, unknown>) => void
  /** How the agent stands (STATUS). */
  readonly status?: (status: Record<string, unknown>) => void
  /** Once, with what is known of why. */
  readonly close: (reason: string) => void
}

export interface Link {
  readonly mux: Mux
  readonly hello: (hello: object) => void
  readonly goaway: (reason: GoawayReason, more?: object) => void
  /** Resolves when the peer has taken all that was sent before, or when the link is gone. */
  readonly taken: () => Promise<void>
  readonly status: (status: object) => void
  readonly close: (reason: string) => void
}

/** Reason, last stream and deadline; what comes behind is JSON. */
const goawayBytes = 10

const json = (payload: Buffer): Record<string, unknown> => {
  if (payload.length === 0) return {}
  try {
    const value: unknown = JSON.parse(payload.toString("utf8"))
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value }
  } catch {
    // Falls through: what is no object is an error of the peer.
  }
  throw new ProtocolError("metadata that is no JSON object")
}

/** `head`: what came with the upgrade already. `opensOdd`: this side faces the public. */
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
      // Only answers to frames of the peer pile up like that: it asks on and on and reads nothing.
      if (socket.writableLength > limits.queuedBytes) close("takes no answers")
    } catch (error) {
      close(error instanceof ProtocolError ? `protocol: ${error.message}` : String(error))
    }
  }

  let heardAt = performance.now()
  let pingedAt = heardAt
  let lookedAt = heardAt
  /** Since when an answer is waited for, because somebody waits for the peer. */
  let askedAt: number | undefined
  const keeper = setInterval(() => {
    const now = performance.now()
    // This process stood still, and has not read what the peer said meanwhile.
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
  // A link has no half: the edge's sockets would stay open for the public's half-close.
  socket.on("end", () => close("closed"))
  socket.on("close", () => close("closed"))
  // Once the caller holds its link, and before the socket brings more.
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

/** A mux over a socket: the carrier, the pings that keep it alive, and its end. */
import type { Socket } from "node:net"
import { frame, goaway, type GoawayReason, timing } from "./Manifest.ts"
import { Mux, type MuxStream, ProtocolError } from "./Mux.ts"

export interface LinkEvents {
  readonly open: (stream: MuxStream, kind: number, flags: number, meta: Record<string, unknown>) => void
  readonly hello: (hello: Record<string, unknown>) => void
  readonly goaway: (reason: number) => void
  /** Once, with what is known of why. */
  readonly close: (reason: string) => void
}

export interface Link {
  readonly mux: Mux
  readonly hello: (hello: object) => void
  readonly goaway: (reason: GoawayReason) => void
  readonly close: (reason: string) => void
}

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
export const makeLink = (socket: Socket, head: Buffer, opensOdd: boolean, events: LinkEvents): Link => {
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
        else if (type === frame.goaway) events.goaway(payload.length >= 2 ? payload.readUInt16BE(0) : 0)
      },
    },
  )

  const close = (reason: string) => {
    if (closed) return
    closed = true
    clearInterval(keeper)
    mux.close()
    socket.destroySoon()
    events.close(reason)
  }
  const take = (chunk: Buffer) => {
    try {
      mux.receive(chunk)
    } catch (error) {
      close(error instanceof ProtocolError ? `protocol: ${error.message}` : String(error))
    }
  }

  let silent = 0
  const keeper = setInterval(() => {
    silent = mux.heard ? 0 : silent + timing.pingMillis
    mux.heard = false
    if (silent >= timing.silenceMillis) close("silence")
    else mux.send(frame.ping, 0, Buffer.alloc(8))
  }, timing.pingMillis)
  keeper.unref()

  socket.setNoDelay(true)
  socket.setTimeout(0)
  socket.on("data", take)
  socket.on("drain", () => mux.drained())
  socket.on("error", (error) => close(error.message))
  socket.on("close", () => close("closed"))
  // Once the caller holds its link, and before the socket brings more.
  if (head.length > 0) queueMicrotask(() => take(head))

  return {
    mux,
    hello: (hello) => mux.send(frame.hello, 0, Buffer.from(JSON.stringify(hello))),
    goaway: (reason) => {
      const payload = Buffer.alloc(10)
      payload.writeUInt16BE(reason, 0)
      payload.writeUInt32BE(reason === goaway.drain ? 180_000 : 0, 6)
      mux.send(frame.goaway, 0, payload)
    },
    close,
  }
}

/** Splices a socket and a stream: passes bytes, half-close and reset in both directions, with backpressure. */
import type { Socket } from "node:net"
import { reset } from "./Manifest.ts"
import type { MuxStream } from "./Mux.ts"

/** Counts bytes and may pause them: after false, nothing passes until `onRoom` is called. */
interface Gate {
  readonly count: (direction: "in" | "out", bytes: number) => boolean
  onRoom: () => void
}

/** Returns a function that separates the two, so that the socket can be spliced with another stream. */
export const splice = (
  socket: Socket,
  stream: MuxStream,
  options: {
    /** Handles bytes of the socket; by default they are written to the stream. */
    readonly outgoing?: (chunk: Buffer) => void
    /** Inspects bytes of the stream before they are written to the socket. */
    readonly incoming?: (chunk: Buffer) => void
    /** Handles the end of the socket; by default the stream ends too. */
    readonly onSocketEnd?: () => void
    /** Handles a reset of the stream; by default the socket is reset too. */
    readonly onReset?: (code: number) => void
    /** Handles the end of the stream; by default the socket's writing side ends. */
    readonly onEnd?: () => void
    readonly gate?: Gate
  } = {},
): (() => void) => {
  const { gate } = options
  let undelivered = 0
  let held = false
  const deliver = () => {
    const bytes = undelivered
    undelivered = 0
    if (bytes > 0) stream.delivered(bytes)
  }
  const outgoing =
    options.outgoing ??
    ((chunk: Buffer) => {
      if (!stream.write(chunk)) socket.pause()
    })
  const taken = (chunk: Buffer) => {
    outgoing(chunk)
    if (gate === undefined || gate.count("in", chunk.length)) return
    held = true
    socket.pause()
  }
  socket.on("data", taken)
  stream.onDrain = () => {
    if (!held) socket.resume()
  }
  const ended = options.onSocketEnd ?? (() => stream.end())
  socket.on("end", ended)
  stream.onData = (bytes) => {
    options.incoming?.(bytes)
    if (gate !== undefined && !gate.count("out", bytes.length)) held = true
    if (socket.write(bytes) && !held) stream.delivered(bytes.length)
    else undelivered += bytes.length
  }
  const drained = () => {
    if (!held) deliver()
  }
  socket.on("drain", drained)
  if (gate !== undefined) {
    gate.onRoom = () => {
      if (!held) return
      held = false
      socket.resume()
      if (!socket.writableNeedDrain) deliver()
    }
  }
  stream.onEnd = options.onEnd ?? (() => socket.end())
  stream.onReset = (code) => (options.onReset === undefined ? socket.resetAndDestroy() : options.onReset(code))
  const gone = () => stream.reset(reset.cancel)
  socket.on("error", gone)
  socket.on("close", gone)
  return () => {
    stream.onDrain = () => {}
    if (gate !== undefined) gate.onRoom = () => {}
    socket.off("data", taken).off("end", ended).off("drain", drained).off("error", gone).off("close", gone)
  }
}

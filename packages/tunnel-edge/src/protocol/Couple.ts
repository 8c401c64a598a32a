/** Joins a socket and a stream: bytes, half-close and reset pass either way, and neither runs ahead of the other. */
import type { Socket } from "node:net"
import { reset } from "./Manifest.ts"
import type { MuxStream } from "./Mux.ts"

export const couple = (
  socket: Socket,
  stream: MuxStream,
  options: {
    /** What the socket sends, on its way into the stream; by default as it is. */
    readonly outgoing?: (chunk: Buffer) => void
    /** Sees what the stream brings, before the socket gets it. */
    readonly incoming?: (chunk: Buffer) => void
    /** The stream was reset; by default the socket is too. */
    readonly onReset?: (code: number) => void
  } = {},
): void => {
  let undelivered = 0
  const outgoing =
    options.outgoing ??
    ((chunk: Buffer) => {
      if (!stream.write(chunk)) socket.pause()
    })
  socket.on("data", outgoing)
  stream.onDrain = () => socket.resume()
  socket.on("end", () => stream.end())
  stream.onData = (bytes) => {
    options.incoming?.(bytes)
    if (socket.write(bytes)) stream.delivered(bytes.length)
    else undelivered += bytes.length
  }
  socket.on("drain", () => {
    const bytes = undelivered
    undelivered = 0
    stream.delivered(bytes)
  })
  stream.onEnd = () => socket.end()
  stream.onReset = (code) => (options.onReset === undefined ? socket.resetAndDestroy() : options.onReset(code))
  socket.on("error", () => stream.reset(reset.cancel))
  socket.on("close", () => stream.reset(reset.cancel))
}

/**
 * Connections that balancers hand on. From them the PROXY protocol's header is owed: a connection that does not begin with
 * one, or not in time, is closed without a word. Nobody else is believed.
 */
import type { Socket } from "node:net"
import * as ProxyHeader from "./ProxyHeader.ts"

/** Who is really at the other end, by the balancer's own end of the connection; as long as that is open. */
const sources = new Map<string, ProxyHeader.Source>()

type Ends = Pick<Socket, "remoteAddress" | "remotePort" | "localPort">

/** TLS over a socket has the same ends. */
const keyOf = ({ remoteAddress, remotePort, localPort }: Ends) => `${remoteAddress} ${remotePort} ${localPort}`

/** Whom the balancer of this connection has named; undefined where it comes from no balancer. */
export const sourceOf = (socket: Ends): ProxyHeader.Source | undefined =>
  sources.size === 0 ? undefined : sources.get(keyOf(socket))

/** Reads the header and goes on with the rest of the bytes in the socket; without a source where the balancer speaks for itself. */
export const readHeader = (
  socket: Socket,
  withinMillis: number,
  then: (source: ProxyHeader.Source | undefined) => void,
): void => {
  let bytes = Buffer.alloc(0)
  const end = () => {
    clearTimeout(late)
    socket.off("readable", look).off("close", end).off("end", drop)
  }
  const drop = () => {
    end()
    socket.destroy()
  }
  const late = setTimeout(drop, withinMillis)
  const look = () => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      bytes = Buffer.concat([bytes, chunk])
      const header = ProxyHeader.read(bytes)
      if (header === "invalid") return drop()
      if (header === "incomplete") continue
      end()
      socket.off("error", ignore)
      if (header.source !== undefined) {
        const key = keyOf(socket)
        sources.set(key, header.source)
        socket.once("close", () => sources.delete(key))
      }
      if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length))
      return then(header.source)
    }
  }
  // A connection that breaks off here is the client's affair.
  const ignore = () => {}
  socket.on("error", ignore).on("close", end).on("end", drop).on("readable", look)
}

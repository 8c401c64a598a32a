/**
 * Connections from load balancers. They must start with a PROXY protocol header within a time limit, and are closed
 * otherwise. Headers of other clients are not accepted.
 */
import type { Socket } from "node:net"
import * as ProxyHeader from "./ProxyHeader.ts"

/** Clients of open connections, by the ends of the balancer's connection. */
const sources = new Map<string, ProxyHeader.Source>()

type Ends = Pick<Socket, "remoteAddress" | "remotePort" | "localPort">

/** Returns the key of a connection. A TLS socket has the same ends as the socket below it. */
const keyOf = ({ remoteAddress, remotePort, localPort }: Ends) => `${remoteAddress} ${remotePort} ${localPort}`

/** Returns the client that the balancer named, or undefined if the connection has no balancer. */
export const sourceOf = (socket: Ends): ProxyHeader.Source | undefined =>
  sources.size === 0 ? undefined : sources.get(keyOf(socket))

/** Reads the header and leaves the remaining bytes in the socket. The source is undefined for the balancer's own connections. */
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
  // A connection reset needs no handling here.
  const ignore = () => {}
  socket.on("error", ignore).on("close", end).on("end", drop).on("readable", look)
}

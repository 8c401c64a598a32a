/**
 * Resets connections at the TCP level, so that no client mistakes a truncated response for a complete one. Node cannot
 * reset a TLS socket and throws if asked to, so this module finds the TCP socket below it.
 */
import type { Socket } from "node:net"
import type { TLSSocket } from "node:tls"

const beneath = new WeakMap<Socket, Socket>()
/**
 * TCP sockets whose TLS handshake is about to start, by address and ports. Node does not expose the TCP socket of a TLS
 * socket, but both have the same addresses.
 */
const opening = new Map<string, Socket>()

const keyOf = ({ remoteAddress, remotePort, localPort }: Socket) => `${remoteAddress} ${remotePort} ${localPort}`

/** Registers a TCP socket before its TLS handshake. */
export const expectTls = (socket: Socket): void => {
  const key = keyOf(socket)
  opening.set(key, socket)
  socket.once("close", () => opening.delete(key))
}

/** Associates a TLS socket with its TCP socket after the handshake. */
export const tlsOpened = (secure: TLSSocket): void => {
  const socket = opening.get(keyOf(secure))
  if (socket !== undefined) beneath.set(secure, socket)
}

export const reset = (socket: Socket): void => {
  const tcp = "encrypted" in socket ? beneath.get(socket) : socket
  tcp?.resetAndDestroy()
  socket.destroy()
}

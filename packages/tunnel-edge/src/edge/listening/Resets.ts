/**
 * Connections that end so that nobody takes what they carried for the whole: by a reset of TCP. Node resets no TLS socket,
 * and throws where it is asked to, so the socket beneath it is.
 */
import type { Socket } from "node:net"
import type { TLSSocket } from "node:tls"

const beneath = new WeakMap<Socket, Socket>()
/** Sockets that TLS is about to be opened on. TLS over a socket has the same ends, and is not told which one it is over. */
const opening = new Map<string, Socket>()

const keyOf = ({ remoteAddress, remotePort, localPort }: Socket) => `${remoteAddress} ${remotePort} ${localPort}`

/** TLS will be opened on the socket. */
export const expectTls = (socket: Socket): void => {
  const key = keyOf(socket)
  opening.set(key, socket)
  socket.once("close", () => opening.delete(key))
}

/** TLS was opened. */
export const tlsOpened = (secure: TLSSocket): void => {
  const socket = opening.get(keyOf(secure))
  if (socket !== undefined) beneath.set(secure, socket)
}

export const reset = (socket: Socket): void => {
  const tcp = "encrypted" in socket ? beneath.get(socket) : socket
  tcp?.resetAndDestroy()
  socket.destroy()
}

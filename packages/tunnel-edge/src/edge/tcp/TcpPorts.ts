/** The TCP ports that this edge listens on. A port is open while an agent of its name is attached here. */
import { createServer, isIPv6, type Server, type Socket } from "node:net"
import { type Networks, isWithin } from "@svc/cluster/net/ClientNetwork"
import { readHeader, sourceOf } from "@svc/cluster/net/ProxiedSocket"
import { splice } from "../../protocol/Splice.ts"
import { kind } from "../../protocol/Manifest.ts"
import type { MuxStream } from "../../protocol/Mux.ts"
import { clientOf } from "../listening/Connections.ts"
import type { ConnectionMeter } from "../Metering.ts"
import { Timing } from "../Timing.ts"

/** The route of a raw connection. */
export interface TcpRoute {
  readonly open: (kind: number, meta: object) => MuxStream | undefined
  readonly proxyProtocol: boolean
  readonly passage: (cut: () => void) => ConnectionMeter
  /**
   * Subscribes to changes of the settings; `end` is called when they no longer admit the client. Returns how to
   * unsubscribe.
   */
  readonly enter: (end: () => void) => () => void
}

/** Returns the header of version 1 of the PROXY protocol (haproxy.org, proxy-protocol.txt, section 2.1). */
const proxyHeader = (socket: Socket): Buffer => {
  const from = clientOf(socket)
  const to = socket.localAddress?.replace(/^::ffff:/, "") ?? ""
  const family = isIPv6(from) ? "TCP6" : "TCP4"
  return Buffer.from(
    `PROXY ${family} ${from} ${to} ${sourceOf(socket)?.port ?? socket.remotePort} ${socket.localPort}\r\n`,
    "latin1",
  )
}

/** Forwards a raw connection until it ends, starting with the bytes in `ahead`. */
export const carry = (socket: Socket, stream: MuxStream, route: TcpRoute, ahead?: Buffer): void => {
  const reset = () => void socket.resetAndDestroy()
  const openMeter = route.passage(reset)
  const leave = route.enter(reset)
  openMeter.countRequest()
  socket.setNoDelay(true)
  socket.setKeepAlive(true, Timing.rawKeepAliveMillis)
  socket.setTimeout(Timing.rawIdleMillis, () => socket.destroy())
  socket.on("close", () => {
    openMeter.close()
    leave()
  })
  if (ahead !== undefined) stream.write(ahead)
  splice(socket, stream, { gate: openMeter })
  socket.resume()
}

export const make = (
  host: string,
  route: (name: string, client: string) => Promise<TcpRoute | undefined>,
  /** Returns false if a connection limit is reached. */
  admit: (socket: Socket) => boolean,
  /** Load balancers, which report the address of the client. */
  balancers: Networks,
) => {
  const listeners = new Map<string, { readonly port: number; readonly server: Server }>()

  const close = (name: string) => {
    listeners.get(name)?.server.close()
    listeners.delete(name)
  }

  return {
    /** Listens on the port of a name. Returns false if the port is in use. */
    open: async (name: string, port: number): Promise<boolean> => {
      if (listeners.get(name)?.port === port) return true
      close(name)
      const take = (socket: Socket) => {
        if (!admit(socket)) return void socket.resetAndDestroy()
        void route(name, clientOf(socket)).then(
          (found) => {
            const stream = found?.open(kind.tcp, { peer: clientOf(socket) })
            if (found === undefined || stream === undefined || socket.destroyed) return socket.resetAndDestroy()
            carry(socket, stream, found, found.proxyProtocol ? proxyHeader(socket) : undefined)
          },
          () => socket.resetAndDestroy(),
        )
      }
      const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
        socket.on("error", () => socket.destroy())
        if (!isWithin(balancers, socket.remoteAddress)) return take(socket)
        readHeader(socket, Timing.helloMillis, () => {
          socket.pause()
          take(socket)
        })
      })
      const one = { port, server }
      listeners.set(name, one)
      return await new Promise((resolve) => {
        server.on("error", () => {
          if (listeners.get(name) === one) listeners.delete(name)
          resolve(false)
        })
        // A server that is closed before it listens never emits `listening`.
        server.on("close", () => resolve(true))
        server.listen(port, host, () => resolve(true))
      })
    },
    isOpen: (name: string): boolean => listeners.has(name),
    listens: (name: string, port: number): boolean => listeners.get(name)?.port === port,
    close,
    closeAll: (): void => [...listeners.keys()].forEach(close),
  }
}

export type TcpPorts = ReturnType<typeof make>

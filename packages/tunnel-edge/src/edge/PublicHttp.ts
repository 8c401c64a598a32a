/** A {@link PublicConnection} over a socket: what it says is done to the socket, to a stream of a link, and to a timer. */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { couple } from "../protocol/Couple.ts"
import { kind, reset } from "../protocol/Manifest.ts"
import type { MuxStream } from "../protocol/Mux.ts"
import type { Head } from "../protocol/RequestHead.ts"
import { clientOf } from "./Connections.ts"
import type { Client, Line, Rules } from "./Line.ts"
import { PublicConnection } from "./PublicConnection.ts"
import type { Route } from "./Route.ts"

export interface Front extends Rules {
  readonly route: (head: Head, client: string) => Promise<Route>
  /** The way that was taken led nowhere: another one, if there is. */
  readonly reroute: (head: Head, client: string) => Promise<Route>
  /** The connection became one of another protocol. */
  readonly upgraded: (socket: Socket) => void
  /** An agent, or another edge, asked for a link: the socket is its from here on. */
  readonly link: (head: Head, socket: Socket, rest: Buffer) => void
}

/** The name a TLS client asked for (SNI); undefined where it named none, or there is no TLS. */
const serverName = (socket: Socket): string | undefined =>
  socket instanceof TLSSocket && typeof socket.servername === "string" ? socket.servername.toLowerCase() : undefined

/** `begun`: what the socket brought already. */
export const serve = (socket: Socket, proto: Client["proto"], front: Front, begun?: Buffer): void => {
  const client: Client = { address: clientOf(socket), proto, serverName: serverName(socket) }
  let stream: MuxStream | undefined
  let uncouple = () => {}
  let timer: NodeJS.Timeout | undefined

  const settle = (route: Promise<Route>) =>
    void route.then(
      (found) => {
        if (!socket.destroyed) connection.routed(found)
      },
      () => socket.destroy(),
    )
  const received = (chunk: Buffer) => connection.received(chunk)
  const deadlinePassed = () => connection.deadlinePassed()

  const line: Line = {
    route: (head) => settle(front.route(head, client.address)),
    reroute: (head) => {
      uncouple()
      settle(front.reroute(head, client.address))
    },
    open: (route, passage) => {
      stream = route.open(kind.http, { peer: client.address, proto })
      if (stream === undefined) return false
      socket.off("data", received)
      uncouple = couple(socket, stream, {
        gate: passage,
        outgoing: received,
        incoming: (bytes) => connection.answers(bytes),
        onEnd: () => connection.streamEnded(),
        onReset: (code) => connection.streamReset(code),
      })
      return true
    },
    forward: (bytes) => {
      if (stream?.write(bytes) === false) socket.pause()
    },
    finish: () => stream?.end(),
    reset: (code) => stream?.reset(code),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    discard: () => {
      socket.removeAllListeners("data")
      socket.resume()
    },
    end: (bytes) => {
      if (socket.destroyed) return
      if (bytes === undefined) socket.end()
      else socket.end(bytes)
    },
    destroy: () => void socket.destroy(),
    abort: () => void socket.resetAndDestroy(),
    deadline: (millis) => {
      clearTimeout(timer)
      timer = millis === undefined ? undefined : setTimeout(deadlinePassed, millis).unref()
    },
    idle: (millis) => void socket.setTimeout(millis),
    nextTurn: () => void setImmediate(() => connection.turned()),
    upgraded: () => front.upgraded(socket),
    handOver: (head, rest) => {
      socket.removeAllListeners()
      front.link(head, socket, rest)
    },
  }
  const connection = new PublicConnection(line, client, front)

  socket.on("data", received)
  socket.on("end", () => connection.ended())
  socket.on("timeout", () => connection.idled())
  socket.on("error", () => stream?.reset(reset.cancel))
  socket.on("close", () => connection.closed())
  socket.setNoDelay(true)
  if (begun !== undefined) received(begun)
}

/** Runs a {@link PublicConnection} over a socket, a stream of a link and a timer. */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import * as TurnBudget from "@svc/cluster/net/TurnBudget"
import { splice } from "../../protocol/Splice.ts"
import { kind, type ResetCode } from "../../protocol/Manifest.ts"
import type { MuxStream } from "../../protocol/Mux.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import { clientOf } from "../listening/Connections.ts"
import type { Client, ConnectionContext, Rules } from "./ConnectionContext.ts"
import type { ConnectionMeter } from "../Metering.ts"
import { PublicConnection } from "./PublicConnection.ts"
import { reset } from "../listening/Resets.ts"
import type { Route, StreamRoute } from "../routing/Route.ts"

export interface Front extends Rules {
  readonly route: (head: Head, client: Client) => Promise<Route>
  /** Looks up another route after the first one failed. */
  readonly reroute: (head: Head, client: Client) => Promise<Route>
  /** Marks a connection as upgraded to another protocol. */
  readonly upgraded: (socket: Socket) => void
  /** Takes over the socket of an agent or another edge that requested a link. */
  readonly link: (head: Head, socket: Socket, rest: Buffer) => void
}

/** Returns the server name of a TLS client (SNI); undefined without TLS or without SNI. */
const serverName = (socket: Socket): string | undefined =>
  socket instanceof TLSSocket && typeof socket.servername === "string" ? socket.servername.toLowerCase() : undefined

/** Implements the context with methods: closures would cost each of many idle connections a kilobyte. */
class SocketContext implements ConnectionContext {
  readonly connection: PublicConnection
  private readonly socket: Socket
  private readonly client: Client
  private readonly front: Front
  private stream: MuxStream | undefined
  private uncouple = () => {}
  private timer: NodeJS.Timeout | undefined
  readonly received = (chunk: Buffer): void => this.connection.received(chunk)

  constructor(socket: Socket, client: Client, front: Front) {
    this.socket = socket
    this.client = client
    this.front = front
    this.connection = new PublicConnection(this, client, front)
  }

  route(head: Head): void {
    this.settle(this.front.route(head, this.client))
  }

  reroute(head: Head): void {
    this.uncouple()
    this.settle(this.front.reroute(head, this.client))
  }

  private settle(route: Promise<Route>): void {
    void route.then(
      (found) => {
        if (!this.socket.destroyed) this.connection.routed(found)
      },
      () => this.socket.destroy(),
    )
  }

  open(route: StreamRoute, passage: ConnectionMeter): boolean {
    const { address, proto } = this.client
    this.stream = route.open(kind.http, { peer: address, proto })
    if (this.stream === undefined) return false
    this.socket.off("data", this.received)
    this.uncouple = splice(this.socket, this.stream, {
      gate: passage,
      outgoing: this.received,
      // The connection handles the end itself, because pipelined requests may still wait for their turn.
      onSocketEnd: () => {},
      incoming: (bytes) => this.connection.answers(bytes),
      onEnd: () => this.connection.streamEnded(),
      onReset: (code) => this.connection.streamReset(code),
    })
    return true
  }

  forward(bytes: Buffer): void {
    if (this.stream?.write(bytes) === false) this.socket.pause()
  }

  finish(): void {
    this.stream?.end()
  }

  reset(code: ResetCode): void {
    this.stream?.reset(code)
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  discard(): void {
    this.socket.removeAllListeners("data")
    this.socket.resume()
  }

  end(bytes?: Buffer): void {
    if (this.socket.destroyed) return
    if (bytes === undefined) this.socket.end()
    else this.socket.end(bytes)
  }

  destroy(): void {
    this.socket.destroy()
  }

  abort(): void {
    reset(this.socket)
  }

  deadline(millis: number | undefined): void {
    clearTimeout(this.timer)
    this.timer = millis === undefined ? undefined : setTimeout(() => this.connection.deadlinePassed(), millis).unref()
  }

  idle(millis: number): void {
    this.socket.setTimeout(millis)
  }

  nextTurn(): void {
    setImmediate(() => this.connection.turned())
  }

  isTurnSpent(): boolean {
    return TurnBudget.isSpent()
  }

  upgraded(): void {
    this.front.upgraded(this.socket)
  }

  handOver(head: Head, rest: Buffer): void {
    this.socket.removeAllListeners()
    this.front.link(head, this.socket, rest)
  }
}

/** Serves HTTP on a socket. `begun` contains the bytes that were already read. */
export const serve = (socket: Socket, proto: Client["proto"], front: Front, begun?: Buffer): void => {
  const client: Client = { address: clientOf(socket), proto, serverName: serverName(socket) }
  const { connection, received } = new SocketContext(socket, client, front)
  socket.on("data", received)
  socket.on("end", () => connection.ended())
  socket.on("timeout", () => connection.idled())
  // The close event follows, and the splice resets the stream.
  socket.on("error", () => {})
  socket.on("close", () => connection.closed())
  socket.setNoDelay(true)
  if (begun !== undefined) received(begun)
}

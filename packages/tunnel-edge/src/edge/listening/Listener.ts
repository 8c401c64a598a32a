/**
 * The public port: clear or TLS is told by the first byte, and TLS for a name that wants it unopened is told by its
 * ClientHello (SNI) before anything is decrypted.
 */
import { createServer, type Server, type Socket } from "node:net"
import { createServer as createSecureServer, type Server as SecureServer } from "node:tls"
import { isWithin, type Networks } from "@svc/cluster/net/ClientNetwork"
import { readHeader } from "@svc/cluster/net/ProxiedSocket"
import { Effect, Schema } from "effect"
import { getExtensionData, readTlsClientHello } from "read-tls-client-hello"
import { refusal } from "../http/EdgeResponses.ts"
import * as Resets from "./Resets.ts"
import { Timing } from "../Timing.ts"

export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** The port could not be listened on. */
export class EdgeListenFailed extends Schema.TaggedError<EdgeListenFailed>()("EdgeListenFailed", {
  message: Schema.String,
}) {}

export interface ListenerEvents {
  /** Balancers, whose connections begin with a header of the PROXY protocol. */
  readonly balancers: Networks
  /** False: there are as many connections as may be. */
  readonly admit: (socket: Socket) => boolean
  /** `begun`: what the socket brought already. */
  readonly http: (socket: Socket, proto: "http" | "https", begun?: Buffer) => void
  /** TLS for this name is opened by the agent, not here. */
  readonly passesThrough: (name: string) => Promise<boolean>
  readonly passthrough: (socket: Socket, name: string) => void
}

const handshake = 0x16

export interface Listener {
  readonly server: Server
  /** What other edges dial where `server` shares its port with edges of the same machine. */
  readonly own: Server
  /** A new certificate, for connections from now on. */
  readonly renew: (certificate: Certificate) => void
}

/** `clear`: requests may come without TLS, also where there is a certificate. */
export const make = (certificate: Certificate | undefined, clear: boolean, events: ListenerEvents): Listener => {
  const secure: SecureServer | undefined =
    certificate === undefined
      ? undefined
      : createSecureServer(
          { ...certificate, ALPNProtocols: ["http/1.1"], allowHalfOpen: true, handshakeTimeout: Timing.helloMillis },
          (socket) => {
            Resets.tlsOpened(socket)
            events.http(socket, "https")
          },
        )
  secure?.on("tlsClientError", () => {})

  const opened = async (socket: Socket) => {
    const late = setTimeout(() => socket.destroy(), Timing.helloMillis)
    const hello = await readTlsClientHello(socket).finally(() => clearTimeout(late))
    const name = getExtensionData(hello, "server_name")?.serverName?.toLowerCase()
    if (name !== undefined && (await events.passesThrough(name))) return events.passthrough(socket, name)
    if (secure === undefined) return void socket.destroy()
    socket.setTimeout(0)
    Resets.expectTls(socket)
    secure.emit("connection", socket)
  }

  const take = (socket: Socket) => {
    if (!events.admit(socket)) return void socket.resetAndDestroy()
    socket.setTimeout(Timing.firstBytesMillis, () => socket.destroy())
    const broken = () => socket.destroy()
    socket.on("error", broken)
    socket.once("end", broken)
    socket.once("data", (chunk: Buffer) => {
      socket.off("end", broken)
      if (chunk[0] !== handshake) {
        socket.setTimeout(0)
        if (clear) return events.http(socket, "http", chunk)
        socket.end(refusal(400, "This port speaks TLS only."))
        return socket.destroySoon()
      }
      socket.pause()
      socket.unshift(chunk)
      opened(socket).catch(() => socket.destroy())
    })
  }
  const arrive = (socket: Socket) => {
    if (!isWithin(events.balancers, socket.remoteAddress)) return take(socket)
    readHeader(socket, Timing.helloMillis, () => take(socket))
  }

  return {
    server: createServer({ allowHalfOpen: true }, arrive),
    own: createServer({ allowHalfOpen: true }, take),
    renew: (renewed) => secure?.setSecureContext(renewed),
  }
}

/** Begins to listen, port 0 taking a free one; answers the port. `shares`: others of this machine listen there as well. */
export const listen = (
  server: Server,
  { host, port, shares }: { readonly host: string; readonly port: number; readonly shares: boolean },
): Effect.Effect<number, EdgeListenFailed> =>
  Effect.callback((resume) => {
    server.once("error", ({ message }) =>
      resume(Effect.fail(new EdgeListenFailed({ message: `The edge cannot listen on ${host}:${port}: ${message}` }))),
    )
    server.listen({ host, port, reusePort: shares }, () => {
      const bound = server.address()
      resume(Effect.succeed(typeof bound === "object" && bound !== null ? bound.port : port))
    })
  })

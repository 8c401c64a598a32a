/**
 * The public port. The first byte distinguishes cleartext from TLS, and the server name in the ClientHello (SNI)
 * selects TLS passthrough before anything is decrypted.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
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

/** The edge could not listen on its port. */
class EdgeListenFailed extends Schema.TaggedError<EdgeListenFailed>()("EdgeListenFailed", {
  message: Schema.String,
}) {}

interface ListenerEvents {
  /** Load balancers whose connections start with a PROXY protocol header. */
  readonly balancers: Networks
  /** Returns false if a connection limit is reached. */
  readonly admit: (socket: Socket) => boolean
  /** Handles a connection; `begun` contains the bytes that were already read. */
  readonly http: (socket: Socket, proto: "http" | "https", begun?: Buffer) => void
  /** Returns whether the agent terminates TLS for this name. */
  readonly passesThrough: (name: string) => Promise<boolean>
  readonly passthrough: (socket: Socket, name: string) => void
}

const handshake = 0x16

export interface Listener {
  readonly server: Server
  /** Server for connections of other edges, used if `server` shares its port with other edges of this machine. */
  readonly own: Server
  /** Sets the certificate for new connections. */
  readonly renew: (certificate: Certificate) => void
}

/** `clear` allows requests without TLS even if there is a certificate. */
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

/**
 * Starts listening and returns the port; port 0 selects a free one. `shares` allows other edges of this machine to use
 * the same port.
 */
export const listen = (
  server: Server,
  { host, port, shares }: { readonly host: string; readonly port: number; readonly shares: boolean },
): Effect.Effect<number, EdgeListenFailed> =>
  Effect.callback((resume) => {
    server.once("error", ({ message }) =>
      resume(Effect.fail(new EdgeListenFailed({ message: `The edge cannot listen on ${host}:${port}: ${message}` }))),
    )
    server.listen({ host, port, reusePort: shares }, () => {
      resume(Effect.succeed((server.address() as AddressInfo).port))
    })
  })

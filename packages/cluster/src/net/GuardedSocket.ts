/**
 * Receives messages of a WebSocket (RFC 6455) whose URL comes from another server. Its address is checked like all addresses of
 * the guarded client, and redirects are not followed. The size of a message and the amount of data per interval are limited.
 * Compression is off, and only pings and pongs are sent.
 */
import { Effect, Schema } from "effect"
import type { LookupFunction } from "node:net"
import { type ClientOptions, WebSocket } from "ws"
import { Timing } from "../Timing.ts"

export interface Listening {
  /** The offered subprotocols (RFC 6455 section 1.9). */
  readonly protocols: ReadonlyArray<string>
  readonly headers: Readonly<Record<string, string>>
  /** The maximum size of a message in bytes; a larger one closes the socket. */
  readonly atMost: number
  /** Called when the socket is open; messages are delivered from here on. */
  readonly opened: () => void
  readonly message: (text: string) => void
}

/** The server rejected the handshake with this HTTP status. */
export class NotOpened extends Schema.TaggedError<NotOpened>()("NotOpened", { status: Schema.Int }) {}

/** Why the socket closed, by the codes of `RequestFailed`; an `Error` is that of the connection. */
type SocketEnd = NotOpened | Error | "timeout" | "too_large" | "connection"

/** The limits of data within `Timing.socketWindowMillis`. */
const windowBytes = 1024 * 1024
const windowMessages = 500
/** The maximum size of pongs that the server has not read. */
const unsentBytes = 16 * 1024

/** The library's error code of a message above the maximum size. */
const tooLarge = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"

/** Runs until the socket closes. An interruption closes it. */
export const listen = (
  url: URL,
  { protocols, headers, atMost, opened, message }: Listening,
  lookup: LookupFunction,
): Effect.Effect<never, SocketEnd> =>
  Effect.callback<never, SocketEnd>((resume) => {
    const target = new URL(url)
    target.protocol = url.protocol === "https:" ? "wss:" : "ws:"
    const options: ClientOptions & { readonly lookup: LookupFunction } = {
      headers: { ...headers },
      lookup,
      maxPayload: atMost,
      perMessageDeflate: false,
      followRedirects: false,
      handshakeTimeout: Timing.socketOpenMillis,
      autoPong: false,
      // Processing one event per turn would count a flood only slowly while the process is busy.
      allowSynchronousEvents: true,
    }
    const socket = new WebSocket(target, [...protocols], options)
    let over = false
    let bytes = 0
    let messages = 0
    let lastDataAt = performance.now()

    const end = (why: SocketEnd) => {
      if (over) return
      over = true
      clearInterval(fresh)
      clearInterval(alive)
      socket.terminate()
      resume(Effect.fail(why))
    }
    const fresh = setInterval(() => {
      bytes = 0
      messages = 0
    }, Timing.socketWindowMillis)
    const alive = setInterval(() => {
      if (performance.now() - lastDataAt > Timing.socketSilenceMillis) end("timeout")
      else if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount <= unsentBytes) socket.ping()
    }, Timing.socketPingMillis)

    const counted = () => {
      if (!over && ++messages > windowMessages) end("too_large")
      return !over
    }
    let listening = () => {}
    socket.on("upgrade", ({ socket: under }) => {
      listening = () =>
        under.on("data", (chunk: Buffer) => {
          lastDataAt = performance.now()
          bytes += chunk.length
          if (bytes > windowBytes) end("too_large")
        })
    })
    socket.on("open", () => {
      lastDataAt = performance.now()
      // An earlier listener would consume data that arrived with the response, and the library would miss it.
      listening()
      if (!over) opened()
    })
    socket.on("ping", () => {
      if (!counted()) return
      if (socket.bufferedAmount > unsentBytes) end("timeout")
      else socket.pong()
    })
    socket.on("pong", counted)
    socket.on("message", (data, isBinary) => {
      if (counted() && !isBinary) message(String(data))
    })
    socket.on("unexpected-response", (_, answer) => {
      answer.destroy()
      end(new NotOpened({ status: answer.statusCode ?? 0 }))
    })
    socket.on("error", (error) => end("code" in error && error.code === tooLarge ? "too_large" : error))
    socket.on("close", () => end("connection"))
    return Effect.sync(() => end("connection"))
  })

/**
 * A WebSocket (RFC 6455) to an address that a server named, to listen only. The address is judged as every other of the
 * guarded client's, redirects are not followed, and what comes is bounded: the length of a message, and how much of
 * anything may come within a while. Nothing is unpacked, and nothing is sent but what keeps it open.
 */
import { Effect, Schema } from "effect"
import type { LookupFunction } from "node:net"
import { type ClientOptions, WebSocket } from "ws"
import { Timing } from "../Timing.ts"

export interface Listening {
  /** Subprotocols that are offered (RFC 6455 section 1.9). */
  readonly protocols: ReadonlyArray<string>
  readonly headers: Readonly<Record<string, string>>
  /** Bytes of a message; a longer one ends it. */
  readonly atMost: number
  /** It is open: what comes from now on is heard. */
  readonly opened: () => void
  readonly message: (text: string) => void
}

/** The server opens no WebSocket there, for us. */
export class NotOpened extends Schema.TaggedError<NotOpened>()("NotOpened", { status: Schema.Int }) {}

/** Why it has ended, in the words of `RequestFailed`; an error is that of the connection. */
export type SocketEnd = NotOpened | Error | "timeout" | "too_large" | "connection"

/** What may come within `Timing.socketWindowMillis`: more than that is nobody's conversation. */
const windowBytes = 1024 * 1024
const windowMessages = 500
/** What the server has not taken of our answers to its pings. */
const unsentBytes = 16 * 1024

/** Lasts while it is open; cut off, it is closed. */
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
      // One event a turn would count a flood by the turns that this process has, and hold it open.
      allowSynchronousEvents: true,
    }
    const socket = new WebSocket(target, [...protocols], options)
    let over = false
    let bytes = 0
    let messages = 0
    let heardAt = performance.now()

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
      if (performance.now() - heardAt > Timing.socketSilenceMillis) end("timeout")
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
          heardAt = performance.now()
          bytes += chunk.length
          if (bytes > windowBytes) end("too_large")
        })
    })
    socket.on("open", () => {
      heardAt = performance.now()
      // Not before: who listens first gets what came with the answer, and the library would miss it.
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
    socket.on("error", end)
    socket.on("close", (code) => end(code === 1009 ? "too_large" : "connection"))
    return Effect.sync(() => end("connection"))
  })

/**
 * Bounds what one HTTP connection may use of the process. Node hands over every pipelined request as soon as its head is
 * read: 64 KiB hold 2,500 requests. Here the requests of a connection are served one at a time, in order (RFC 9112 section
 * 9.3.2), at most one in a turn of the event loop, so that other connections come in between. A connection with too many
 * waiting requests is closed, and so is one on which nothing moves.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/**
 * Pipelined requests of a connection that may wait. Each holds about 4 KB; 500 connections with 99 waiting requests each took
 * 220 MB. Browsers and common HTTP clients do not pipeline at all.
 */
export const waitingAtMost = 16

/**
 * Neither a byte read nor one taken: longer than any call may wait for what comes (60 s), so no answer is cut. With an
 * answer half taken Node looks twice, so such a connection ends after twice as long.
 */
const stillMillis = 120_000

type Serve = () => void

export const bounded = (server: Server): Server => {
  const lines = new WeakMap<Socket, Array<Serve>>()
  const emit = server.emit.bind(server) as (event: string, ...given: ReadonlyArray<unknown>) => boolean

  const serve = (socket: Socket, request: IncomingMessage, response: ServerResponse) => {
    response.once("close", () => {
      const next = socket.destroyed ? undefined : lines.get(socket)?.shift()
      if (next === undefined) lines.delete(socket)
      else setImmediate(next)
    })
    emit("request", request, response)
  }

  server.emit = (event: string, ...given: ReadonlyArray<unknown>): boolean => {
    if (event !== "request") return emit(event, ...given)
    const [request, response] = given as [IncomingMessage, ServerResponse]
    const { socket } = request
    const line = lines.get(socket)
    if (line === undefined) {
      lines.set(socket, [])
      serve(socket, request, response)
    } else if (line.length < waitingAtMost) line.push(() => serve(socket, request, response))
    else socket.destroy()
    return true
  }
  return server.setTimeout(stillMillis)
}

/**
 * What one connection may hold of the process. Node hands over every request as soon as its head is read, so 64 KiB of
 * requests sent without waiting for answers are 2,500 handlers in one turn of the event loop, and as many answers that wait
 * in memory for a client that may never read. Here those of a connection are served in turn (RFC 9112 section 9.3.2), and a
 * connection on which nothing moves ends.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** Requests of a connection that wait for the one before; a client that sends more is not worth an answer. */
export const waitingAtMost = 100

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
      else next()
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

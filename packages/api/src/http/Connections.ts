/**
 * Bounds the resources of one HTTP connection. Node hands over every pipelined request as soon as its head is read, and 64
 * KiB hold 2,500 requests. Requests of a connection are therefore served one at a time, in order (RFC 9112 section 9.3.2),
 * at most one per turn of the event loop. A connection with too many waiting requests is closed, and so is an idle one.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/**
 * The maximum of waiting pipelined requests. Each holds about 4 KB; 500 connections with 99 waiting requests took 220 MB.
 * Browsers and common HTTP clients do not pipeline at all.
 */
export const waitingAtMost = 16

/**
 * The idle timeout, longer than any call may wait (60 s), so that no response is cut off. Node checks twice if a response
 * was partly read, so such a connection closes after twice the time.
 */
const stillMillis = 120_000

/**
 * How long a connection may wait for its next request: longer than balancers keep an idle connection, which is 60 s by default
 * (nginx, AWS). Otherwise the service could close the connection while the balancer sends a request over it.
 */
const nextRequestMillis = 75_000
/**
 * How long a client may pause in the rest of its body after the response. The connection stays open until then, because a client
 * that is still sending would otherwise lose the response.
 */
const restOfBodyMillis = 5_000

type Serve = () => void

export const bounded = (server: Server): Server => {
  const lines = new WeakMap<Socket, Array<Serve>>()
  const emit = server.emit.bind(server) as (event: string, ...given: ReadonlyArray<unknown>) => boolean

  const serve = (socket: Socket, request: IncomingMessage, response: ServerResponse) => {
    response.once("close", () => {
      if (!request.complete) socket.setTimeout(restOfBodyMillis)
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
  server.keepAliveTimeout = nextRequestMillis
  return server.setTimeout(stillMillis)
}

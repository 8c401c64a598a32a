/**
 * Responds to requests that Node's parser rejects with a problem and a request id, instead of the parser's empty response.
 */
import { STATUS_CODES, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { AddressBook } from "@svc/domain/Addresses"
import { HeadersTooLarge, InvalidRequest, type Problem, RequestTimeout } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { makeRequestId } from "../RequestContext.ts"
import { render } from "../problems/Render.ts"

const refusals: Readonly<Record<string, () => Problem>> = {
  HPE_HEADER_OVERFLOW: () => new HeadersTooLarge({ detail: "The request header exceeds the limit of 16 KiB." }),
  ERR_HTTP_REQUEST_TIMEOUT: () => new RequestTimeout({ detail: "The request did not arrive in time." }),
}
const unreadable = () => new InvalidRequest({ detail: "The request could not be read: it is not HTTP/1.1 (RFC 9112)." })

/** Written as bytes, because a response of the library needs a request. */
const written = (book: Pick<AddressBook, "baseUrl">, problem: Problem): Uint8Array => {
  const requestId = Effect.runSync(makeRequestId)
  const { body, headers, status } = render(book, requestId, problem)
  const bytes = body._tag === "Uint8Array" ? body.body : new Uint8Array(0)
  const fields = {
    ...headers,
    "content-length": bytes.length,
    connection: "close",
    date: new Date().toUTCString(),
    "request-id": requestId,
    "x-content-type-options": "nosniff",
  }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join("")}\r\n`), bytes])
}

/**
 * Returns whether a response on the connection is pending or partly sent, into which another must not be written. A
 * request that stalls or breaks off itself is excluded: its handler waits for the rest of the body.
 */
const isUnderWay = ({ headersSent, req, writableFinished }: ServerResponse) =>
  !writableFinished && (headersSent || req.complete)

/** Handles parser errors of a server. Unknown expectations are ignored (RFC 9110 section 10.1.1). */
export const answered = (server: Server, book: Pick<AddressBook, "baseUrl">): Server => {
  /** The response in progress on a connection; an error behind its request must wait for it. */
  const underWay = new WeakMap<object, ServerResponse>()
  const refuse = (socket: Socket, code: string | undefined): void => {
    const before = underWay.get(socket)
    if (!socket.writable || (before !== undefined && isUnderWay(before))) return void socket.destroy()
    socket.write(written(book, (refusals[code ?? ""] ?? unreadable)()))
    socket.destroySoon()
  }
  // CONNECT requests mistake the service for a proxy.
  server.on("connect", (_, socket) => void socket.end(written(book, unreadable())))
  // On a timeout, Node would close a request that waits for its body like an idle connection.
  server.on("timeout", (socket) => {
    if (underWay.get(socket)?.req.complete === false) refuse(socket, "ERR_HTTP_REQUEST_TIMEOUT")
    else socket.destroy()
  })
  return server
    .on("request", (request, response) => underWay.set(request.socket, response))
    .on("checkExpectation", (request, response) => server.emit("request", request, response))
    .on("clientError", (error: NodeJS.ErrnoException, stream) => refuse(stream as Socket, error.code))
}

/**
 * Requests that the server's parser takes for none: they have a problem body like any other refusal, in place of the
 * parser's own answer, which has neither a body nor a request id.
 */
import { STATUS_CODES, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { AddressBook } from "@svc/domain/Addresses"
import { HeadersTooLarge, InvalidRequest, type Problem, RequestTimeout } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { makeRequestId } from "../RequestId.ts"
import { render } from "../problems/Render.ts"

const refusals: Readonly<Record<string, () => Problem>> = {
  HPE_HEADER_OVERFLOW: () =>
    new HeadersTooLarge({ detail: "The header of the request is over the limit, which is 16 KiB." }),
  ERR_HTTP_REQUEST_TIMEOUT: () => new RequestTimeout({ detail: "The request did not arrive in time." }),
}
const unreadable = () => new InvalidRequest({ detail: "The request could not be read: it is not HTTP/1.1 (RFC 9112)." })

/** As bytes: there is no request that an answer of the library could belong to. */
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
 * Whether an answer is still to come, or half said, which another would be taken for. Not where it is this request itself
 * that does not end, or breaks off: what serves it waits for the rest of its body.
 */
const isUnderWay = ({ headersSent, req, writableFinished }: ServerResponse) =>
  !writableFinished && (headersSent || req.complete)

/** Answers for a server what its parser refuses. An expectation that it does not know is passed over (RFC 9110 section 10.1.1). */
export const answered = (server: Server, book: Pick<AddressBook, "baseUrl">): Server => {
  /** What is being answered on a connection: what comes behind its request is not answered in the midst of it. */
  const underWay = new WeakMap<object, ServerResponse>()
  const refuse = (socket: Socket, code: string | undefined): void => {
    const before = underWay.get(socket)
    if (!socket.writable || (before !== undefined && isUnderWay(before))) return void socket.destroy()
    socket.write(written(book, (refusals[code ?? ""] ?? unreadable)()))
    socket.destroySoon()
  }
  // Whoever asks for a tunnel through us takes us for a proxy.
  server.on("connect", (_, socket) => void socket.end(written(book, unreadable())))
  // Where nothing moves, Node would end a request that waits for its body like a connection on which there is none.
  server.on("timeout", (socket) => {
    if (underWay.get(socket)?.req.complete === false) refuse(socket, "ERR_HTTP_REQUEST_TIMEOUT")
    else socket.destroy()
  })
  return server
    .on("request", (request, response) => underWay.set(request.socket, response))
    .on("checkExpectation", (request, response) => server.emit("request", request, response))
    .on("clientError", (error: NodeJS.ErrnoException, stream) => refuse(stream as Socket, error.code))
}

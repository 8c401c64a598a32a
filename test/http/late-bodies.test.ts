/** Requests whose body never completes. */
import { createServer, type RequestListener, type Server } from "node:http"
import { type AddressInfo, connect } from "node:net"
import * as Connections from "@svc/api/http/Connections"
import * as MalformedRequests from "@svc/api/http/MalformedRequests"
import { afterEach, describe, expect, it } from "vitest"

const servers: Array<ReturnType<typeof createServer>> = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** Returns everything received until the connection ends; the server waits a fifth of a second for a request. */
const responsesOf = async (
  serve: RequestListener,
  request: string,
  set: (server: Server) => void = () => undefined,
) => {
  const options = { requestTimeout: 200, headersTimeout: 200, connectionsCheckingInterval: 20 }
  const server = MalformedRequests.answered(Connections.bounded(createServer(options, serve)), {
    baseUrl: "http://localhost",
  })
  set(server)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
  let text = ""
  socket.on("data", (chunk: Buffer) => (text += chunk.toString())).on("error", () => undefined)
  socket.write(request)
  await new Promise((resolve) => socket.once("close", resolve))
  return text
}

/** Responds after reading the body, as a decoder does. */
const whenRead: RequestListener = (request, response) => {
  request.on("error", () => undefined).resume()
  request.once("end", () => response.end("read"))
}

const half = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf"

describe("Incomplete body", () => {
  it("is a 408 problem and closes the connection", async () => {
    const answer = await responsesOf(whenRead, half)
    const [head = "", body = ""] = answer.split("\r\n\r\n")
    expect(head).toMatch(/^HTTP\/1\.1 408 [^]*^connection: close$/m)
    expect(JSON.parse(body)).toMatchObject({ status: 408, code: "request_timeout" })
  })

  it("is a 408 problem even if the client sends nothing more", async () => {
    const still = (server: Server) => {
      server.requestTimeout = 0
      server.setTimeout(100)
      server.keepAliveTimeout = 100
    }
    expect(await responsesOf(whenRead, half, still)).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/)
    // An idle connection is closed without a response.
    const idle = await responsesOf(whenRead, "GET / HTTP/1.1\r\nhost: a\r\n\r\n", still)
    expect(idle.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"])
  })

  it("is a 400 problem if its chunked encoding is invalid", async () => {
    const answer = await responsesOf(
      whenRead,
      "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nnone\r\n",
    )
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*"code":"invalid_request"/)
  })

  it("is reported after the response to the previous request", async () => {
    const answer = await responsesOf(whenRead, `GET / HTTP/1.1\r\nhost: a\r\n\r\n${half}`)
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 408"])
  })

  it("is not reported within another response or its own", async () => {
    const never = await responsesOf((request) => void request.resume(), `GET / HTTP/1.1\r\nhost: a\r\n\r\n${half}`)
    expect(never).toBe("")
    const partial = await responsesOf((_, response) => void response.write("begun"), half)
    expect(partial.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"])
  })
})

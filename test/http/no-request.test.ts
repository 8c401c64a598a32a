/** Input that the HTTP parser rejects, and input that it accepts although it is not a valid request to this service. */
import { connect } from "node:net"
import { beforeAll, describe, expect, it } from "vitest"
import { signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

describe("Malformed request", () => {
  /** Returns everything received until the connection ends. */
  const responsesTo = (...pieces: ReadonlyArray<string>) =>
    new Promise<string>((resolve) => {
      const socket = connect(service.httpPort, "127.0.0.1")
      const received: Array<Buffer> = []
      let sent = 0
      socket.on("data", (chunk: Buffer) => {
        received.push(chunk)
        if (sent < pieces.length) socket.write(pieces[sent++]!)
      })
      socket.on("error", () => {})
      socket.once("close", () => resolve(Buffer.concat(received).toString()))
      socket.write(pieces[sent++]!)
    })
  const get = "GET /api/healthz HTTP/1.1\r\nHost: localhost\r\n"

  it.each([
    ["a line that is no request line", "HELLO\r\n\r\n", 400, "invalid_request"],
    ["a field without a name", `${get}: x\r\n\r\n`, 400, "invalid_request"],
    ["two lengths", `${get}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, 400, "invalid_request"],
    ["no host", "GET /api/healthz HTTP/1.1\r\n\r\n", 400, "invalid_request"],
    ["two hosts", `${get}Host: example.org\r\n\r\n`, 400, "invalid_request"],
    [
      "what is meant for a proxy",
      "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
      400,
      "invalid_request",
    ],
    ["a header of 17 KiB", `${get}X-Much: ${"a".repeat(17 * 1024)}\r\n\r\n`, 431, "headers_too_large"],
  ])("is rejected with a problem: %s", async (_, request, status, code) => {
    const answer = await responsesTo(request)
    const [head = "", body = ""] = answer.split("\r\n\r\n")
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    const id = /^request-id: (req_\w+)$/m.exec(head)?.[1]
    expect(head).toMatch(/^content-type: application\/problem\+json$/m)
    expect(JSON.parse(body)).toMatchObject({ status, code, instance: id, doc_url: `${service.base}/problems/${code}` })
  })

  it("is rejected after the previous response and closes the connection", async () => {
    const answer = await responsesTo(`${get}\r\n`, "HELLO\r\n\r\n")
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"])
  })

  it("is not rejected within a response", async () => {
    const stream = `GET /api/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${session}\r\n\r\n`
    const answer = await responsesTo(stream, "HELLO\r\n\r\n")
    expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*text\/event-stream/)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  it("ignores an unknown expectation", async () => {
    expect(await responsesTo(`${get}Expect: cake\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
  })
})

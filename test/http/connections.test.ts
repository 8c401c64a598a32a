/** Connections: pipelined requests, and the wait for the next one. */
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, connect } from "node:net"
import * as Connections from "@svc/api/http/Connections"
import { afterEach, describe, expect, it } from "vitest"

const servers: Array<ReturnType<typeof createServer>> = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** Pipelines requests, and returns all responses until the connection ends. */
const sent = async (count: number, serve: RequestListener) => {
  const server = Connections.bounded(createServer(serve))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
  const request = (at: number) =>
    `GET /${at} HTTP/1.1\r\nhost: a\r\n${at === count - 1 ? "connection: close\r\n" : ""}\r\n`
  socket.write(Array.from({ length: count }, (_, at) => request(at)).join(""))
  let text = ""
  socket.on("data", (chunk: Buffer) => (text += chunk.toString())).on("error", () => undefined)
  await new Promise((resolve) => socket.once("close", resolve))
  return text
}

describe("Pipelined requests", () => {
  it("are served one at a time in their order", async () => {
    let [under, most] = [0, 0]
    const text = await sent(16, (request, response) => {
      most = Math.max(most, ++under)
      setImmediate(() => {
        under--
        response.end(`[${request.url}]`)
      })
    })
    expect(most).toBe(1)
    expect([...text.matchAll(/\[\/(\d+)\]/g)].map(([, at]) => Number(at))).toEqual(
      Array.from({ length: 16 }, (_, at) => at),
    )
  })

  it("start in different turns of the event loop, even if each response is immediate", async () => {
    let turn = 0
    const count = () => {
      turn++
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    const turns: Array<number> = []
    await sent(16, (_, response) => {
      turns.push(turn)
      response.end()
    })
    clearImmediate(counting)
    expect(new Set(turns).size).toBe(16)
  })

  it("beyond the limit of waiting requests close the connection", async () => {
    let served = 0
    const text = await sent(Connections.waitingAtMost + 2, () => void served++)
    expect([served, text]).toEqual([1, ""])
  })
})

describe("A connection without requests", () => {
  it("stays open for 75 s, longer than balancers keep it, and its responses say so", async () => {
    const server = Connections.bounded(createServer((_, response) => void response.end()))
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { headers } = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    expect(headers.get("keep-alive")).toBe("timeout=75")
    expect(server.timeout).toBeGreaterThan(server.keepAliveTimeout)
  })
})

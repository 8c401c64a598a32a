/** How an agent dials an edge: which address it takes, how long it waits, and whose refusals it believes. */
import dns from "node:dns"
import { createServer as createHttpServer } from "node:http"
import { syncBuiltinESMExports } from "node:module"
import { type AddressInfo, createServer, Socket } from "node:net"
import { dial, NotUnderstood, TunnelRefused } from "@svc/tunnel-edge/agent/Dial"
import { upgradeToken } from "@svc/tunnel-edge/protocol/Manifest"
import { afterEach, describe, expect, it, vi } from "vitest"

const ended: Array<() => void> = []
afterEach(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
  for (const end of ended.splice(0)) end()
})

const carriers = ["idt/1", "websocket"]
const targetOf = (edge: string, carrier: string, offset = 3) => ({
  edge,
  headers: {},
  ca: undefined,
  webSocket: carrier === "websocket",
  offset,
})

describe("a dial", () => {
  it("tries another address of the edge first for each link", async () => {
    const reached: Array<string | undefined> = []
    const server = createHttpServer().on("upgrade", (_, socket: Socket) => {
      reached.push(socket.localAddress)
      socket.on("error", () => {})
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\n\r\n`)
    })
    await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve))
    ended.push(() => server.close())
    const found = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map((address) => ({ address, family: 4 }))
    vi.spyOn(dns, "lookup").mockImplementation(((_: string, __: object, done: (error: null, all: object) => void) =>
      done(null, found)) as never)
    syncBuiltinESMExports()
    for (let n = 0; n < 4; n++) {
      const { port } = server.address() as AddressInfo
      const { duplex } = await dial(targetOf(`http://edges.example:${port}`, "idt/1", n))
      duplex.destroy()
    }
    expect(reached).toEqual(["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1"])
  })

  it.each(carriers)("gives up after ten seconds without a response (%s)", async (carrier) => {
    const server = createServer((socket) => void socket.on("error", () => {}))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    ended.push(() => server.close())
    const { setTimeout } = Socket.prototype
    const waits = new Set<number>()
    vi.spyOn(Socket.prototype, "setTimeout").mockImplementation(function (this: Socket, millis, done) {
      waits.add(millis)
      return setTimeout.call(this, millis / 200, done)
    })
    const edge = `http://edge.localhost:${(server.address() as AddressInfo).port}`
    await expect(dial(targetOf(edge, carrier))).rejects.toThrow()
    expect(waits).toContain(10_000)
  })
})

describe("a dial that is refused", () => {
  it.each(carriers)("tells the refusal of an edge from the response of another program (%s)", async (carrier) => {
    let respond: [number, string] = [401, ""]
    const server = createHttpServer((_, response) => response.writeHead(respond[0]).end(respond[1]))
    server.on("upgrade", (_, socket: Socket) => {
      socket.on("error", () => {})
      socket.end(
        `HTTP/1.1 ${respond[0]} X\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(respond[1])}\r\n\r\n${respond[1]}`,
      )
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    ended.push(() => server.close())
    const target = targetOf(`http://edge.localhost:${(server.address() as AddressInfo).port}`, carrier)
    const refusal = async (status: number, body: string) => {
      respond = [status, body]
      return await dial(target).then(
        () => undefined,
        (error: unknown) => error,
      )
    }
    const refused = await refusal(403, JSON.stringify({ code: "scope_missing", detail: "no" }))
    expect(refused).toBeInstanceOf(TunnelRefused)
    expect(refused).toMatchObject({ status: 403, code: "scope_missing", message: "no" })
    for (const body of ["<html>", "{}", '{"code":7}', "", `{"code":"x","detail":"${"y".repeat(4 * 1024 * 1024)}"}`])
      expect([await refusal(502, body), body.slice(0, 9)]).toEqual([
        new NotUnderstood("the edge answered 502"),
        body.slice(0, 9),
      ])
    server.close()
  })
})

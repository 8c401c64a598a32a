import { createServer } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { makeLink } from "@svc/tunnel-edge/protocol/Link"
import { upgradeToken, version } from "@svc/tunnel-edge/protocol/Manifest"
import { expect, it } from "vitest"

it("an agent that is closed does not wait for an edge that refuses its second link", { timeout: 10_000 }, async () => {
  const server = createServer()
  let asked: (socket: Socket) => void = () => {}
  const second = new Promise<Socket>((resolve) => (asked = resolve))
  server.on("upgrade", (request, socket: Socket) => {
    if (request.headers["svc-tunnel-conn"] !== "0") return asked(socket)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\n\r\n`)
    const quiet = { open: () => {}, hello: () => {}, goaway: () => {}, close: () => {} }
    makeLink(socket, Buffer.alloc(0), true, quiet).hello({
      version,
      public: { hostname: "a", url: "b", tcp_port: null },
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const tunnel = connectTunnel({ key: "svc_id_x", edge: `http://127.0.0.1:${port}`, port: 1, links: 2 })
  expect((await tunnel.ready).url).toBe("b")
  // The dial of the second link is under way when the tunnel is closed, and its refusal says to come again later.
  const socket = await second
  const closed = tunnel.close()
  const body = JSON.stringify({ code: "tunnel_duplicate_edge", detail: "one link is here" })
  socket.end(`HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await closed
  server.close()
})

import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { type Link, type LinkEvents, makeLink } from "@svc/tunnel-edge/protocol/Link"
import { goaway, upgradeToken, version } from "@svc/tunnel-edge/protocol/Manifest"
import { describe, expect, it } from "vitest"

const accept = (socket: Socket, events: Partial<LinkEvents> = {}): Link => {
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\n\r\n`)
  const quiet = { open: () => {}, hello: () => {}, goaway: () => {}, close: () => {} }
  const link = makeLink(socket, Buffer.alloc(0), true, { ...quiet, ...events })
  link.hello({ version, public: { hostname: "a", url: "b", tcp_port: null } })
  return link
}

/** An edge that only accepts links. `refuses` may handle a dial itself; it returns true if it did. */
const edge = async (refuses: (request: IncomingMessage, socket: Socket) => boolean = () => false) => {
  const links: Array<Link> = []
  const waiting: Array<() => void> = []
  const server = createServer()
  server.on("upgrade", (request, socket: Socket) => {
    if (refuses(request, socket)) return
    links.push(accept(socket))
    for (const go of waiting.splice(0)) go()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    /** Returns the link with this number, counted from 0; waits until it exists. */
    link: async (n: number) => {
      while (links.length <= n) await new Promise<void>((resolve) => waiting.push(resolve))
      return links[n]!
    },
    stop: () => {
      for (const link of links) link.close("the test is over")
      server.close()
    },
  }
}

describe("an agent", () => {
  it("closes without waiting for an edge that refuses its second link", { timeout: 10_000 }, async () => {
    let onSecond: (socket: Socket) => void = () => {}
    const second = new Promise<Socket>((resolve) => (onSecond = resolve))
    const { url, stop } = await edge((request, socket) => {
      if (request.headers["svc-tunnel-conn"] === "0") return false
      onSecond(socket)
      return true
    })
    const tunnel = connectTunnel({ key: "svc_id_x", edge: url, port: 1, links: 2 })
    expect((await tunnel.ready).url).toBe("b")
    // The dial of the second link is in flight when the tunnel is closed, and its response asks the agent to retry later.
    const socket = await second
    const closed = tunnel.close()
    const body = JSON.stringify({ code: "tunnel_duplicate_edge", detail: "one link is here" })
    socket.end(`HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await closed
    stop()
  })

  it("reconnects when an edge replaces it without naming a successor, and ends when one is named", async () => {
    const { url, link, stop } = await edge()
    const tunnel = connectTunnel({ key: "svc_id_x", edge: url, port: 1, links: 1 })
    const first = await link(0)
    await tunnel.ready
    first.goaway(goaway.replaced)
    first.close("replaced")
    const second = await link(1)
    second.goaway(goaway.replaced, { successor: { instance: "other", client: "svc command line" } })
    second.close("replaced")
    expect((await tunnel.ended)?.message).toBe("A newer process holds this tunnel.")
    stop()
  })

  it("announces its shutdown only after the edge has acknowledged it", async () => {
    let taken = false
    let greeted: (socket: Socket) => void = () => {}
    const greeting = new Promise<Socket>((resolve) => (greeted = resolve))
    const { url, stop } = await edge((_, socket) => {
      accept(socket, {
        hello: () => {
          // This edge reads slowly from here on.
          socket.pause()
          greeted(socket)
        },
        goaway: () => {
          taken = true
        },
      })
      return true
    })
    const tunnel = connectTunnel({ key: "svc_id_x", edge: url, port: 1, links: 1 })
    await tunnel.ready
    const socket = await greeting
    setTimeout(() => socket.resume(), 100)
    let isDrained: boolean | undefined
    await tunnel.drain(1000, () => {
      isDrained = taken
    })
    expect(isDrained).toBe(true)
    stop()
  })
})

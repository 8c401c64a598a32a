import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { type Link, type LinkEvents, makeLink } from "@svc/tunnel-edge/protocol/Link"
import { goaway, kind, reset, upgradeToken, version } from "@svc/tunnel-edge/protocol/Manifest"
import { describe, expect, it } from "vitest"
import { eventually } from "../harness/Eventually.ts"

const accept = (socket: Socket, events: Partial<LinkEvents> = {}): Link => {
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\n\r\n`)
  const quiet = { open: () => {}, hello: () => {}, goaway: () => {}, close: () => {} }
  const link = makeLink(socket, Buffer.alloc(0), true, { ...quiet, ...events })
  link.hello({ version, public: { hostname: "a", url: "b", tcp_port: null } })
  return link
}

/** An edge that only accepts links. `refuses` may handle a dial itself; it returns true if it did. */
const edge = async (
  refuses: (request: IncomingMessage, socket: Socket) => boolean = () => false,
  events: Partial<LinkEvents> = {},
) => {
  const links: Array<Link> = []
  const waiting: Array<() => void> = []
  const server = createServer()
  server.on("upgrade", (request, socket: Socket) => {
    if (refuses(request, socket)) return
    links.push(accept(socket, events))
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

  it("alternates between its carriers while the edge understands neither, so that a passing fault does not decide", async () => {
    const dialled: Array<string> = []
    const { url, stop } = await edge((request, socket) => {
      dialled.push(request.headers.upgrade === "websocket" ? "websocket" : "own")
      if (dialled.length > 2) return false
      socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
      return true
    })
    for (const [carrier, expected] of [
      ["auto", ["own", "websocket", "own"]],
      ["websocket", ["websocket", "websocket", "websocket"]],
    ] as const) {
      dialled.length = 0
      const tunnel = connectTunnel({ key: "svc_id_x", edge: url, port: 1, links: 1, carrier })
      const first = async () => dialled.slice(0, 3)
      expect(await eventually(first, ({ length }) => length === 3)).toEqual(expected)
      await tunnel.close()
    }
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

  it("moves to another link when its edge drains, and closes the old one after its last stream", async () => {
    const closes: Array<string> = []
    const { url, link, stop } = await edge(undefined, { close: (reason) => void closes.push(reason) })
    const requests = new Map<string, ServerResponse>()
    let port = 0
    const tunnel = connectTunnel({
      key: "svc_id_x",
      edge: url,
      links: 1,
      handler: (request, response) => {
        port = request.socket.localPort!
        requests.set(request.url!, response)
      },
    })
    const first = await link(0)
    await tunnel.ready
    const stream = first.mux.open(kind.http, 0, Buffer.from("{}"))!
    let answer = ""
    stream.onData = (bytes) => (answer += bytes.toString())
    stream.onEnd = () => stream.end()
    stream.write(Buffer.from("GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    await eventually(
      async () => requests.has("/slow"),
      (is) => is,
    )
    first.goaway(goaway.drain)
    const second = await link(1)
    await second.taken()
    // The agent looks at the old link every 50 ms. Its timer started earlier, so it fires before this one.
    await new Promise((resolve) => setTimeout(resolve, 110))
    expect([stream.isOpen, closes]).toEqual([true, []])
    requests.get("/slow")!.end("done")
    await eventually(
      async () => closes,
      (all) => all.length === 1,
    )
    expect(answer).toMatch(/done/)
    // The new link works on.
    await second.taken()
    expect([tunnel.activeCount(), closes.length]).toEqual([0, 1])
    await tunnel.close()
    expect(await tunnel.ended).toBeUndefined()
    // The loopback server of the handler is closed too.
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow()
    stop()
  })

  it("refuses streams with unknown flags and of unknown kinds, and passes on notices", async () => {
    const notices: Array<string> = []
    const { url, link, stop } = await edge()
    const told = { onNotice: (text: string) => void notices.push(text) }
    const tunnel = connectTunnel({ key: "svc_id_x", edge: url, links: 1, ...told })
    const only = await link(0)
    await tunnel.ready
    const codes: Array<number> = []
    for (const [of, flags] of [
      [kind.http, 2],
      [kind.http, 3],
      [kind.probe, 0],
      // The agent has neither a port nor a handler.
      [kind.http, 0],
    ] as const)
      only.mux.open(of, flags, Buffer.from("{}"))!.onReset = (code) => void codes.push(code)
    only.status({ notice: 7 })
    only.status({ notice: "the port moved" })
    await eventually(
      async () => codes,
      (all) => all.length === 4,
    )
    expect(codes.toSorted()).toEqual([reset.protocol, reset.protocol, reset.policy, reset.internal].toSorted())
    expect(notices).toEqual(["the port moved"])
    await tunnel.close()
    stop()
  })

  it("names itself to the edge, and holds between one and four links", async () => {
    const heads: Array<IncomingMessage["headers"]> = []
    const connected: Array<string> = []
    const { url, link, stop } = await edge((request) => (heads.push(request.headers), false))
    const many = connectTunnel({
      key: "svc_id_x",
      edge: url,
      port: 3000,
      host: "app.internal",
      handle: "ada",
      client: "mine/1",
      links: 9,
      onConnected: (address) => void connected.push(address.url),
    })
    await link(3)
    await many.close()
    expect(heads.map((head) => head["svc-tunnel-conn"]).toSorted()).toEqual(["0", "1", "2", "3"])
    expect(new Set(heads.map((head) => head["svc-tunnel-instance"])).size).toBe(1)
    expect(heads[0]).toMatchObject({
      authorization: "Bearer svc_id_x",
      "svc-tunnel-handle": "ada",
      "svc-tunnel-client": "mine/1",
      "svc-tunnel-local": "app.internal:3000",
    })
    expect(connected).toEqual(["b"])
    const one = connectTunnel({ key: "svc_id_x", edge: () => url, handler: () => {}, links: 0 })
    await link(4)
    await one.ready
    await one.close()
    expect(heads).toHaveLength(5)
    expect(["svc-tunnel-handle" in heads[4]!, "svc-tunnel-local" in heads[4]!]).toEqual([false, false])
    stop()
  })
})

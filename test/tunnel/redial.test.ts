/** When an agent dials again, and when it does not. */
import { createServer } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { connectTunnel, type TunnelOptions, TunnelRefused } from "@svc/tunnel-edge/agent/Agent"
import { type Link, makeLink } from "@svc/tunnel-edge/protocol/Link"
import { goaway, upgradeToken, version } from "@svc/tunnel-edge/protocol/Manifest"
import { afterEach, describe, expect, it, vi } from "vitest"
import { eventually } from "../harness/Eventually.ts"

/** How an edge answers a dial: with a link, or with a refusal. */
type Answer = "link" | readonly [status: number, code: string]

/** An edge that answers each dial as the test says. */
const edge = async (answer: (dial: number) => Answer) => {
  const links: Array<Link> = []
  const closed: Array<number> = []
  let dials = 0
  const server = createServer().on("upgrade", (_, socket: Socket) => {
    const given = answer(dials++)
    if (given !== "link") {
      const body = JSON.stringify({ code: given[1], detail: `refused with ${given[0]}` })
      return socket.end(
        `HTTP/1.1 ${given[0]} No\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
    }
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\n\r\n`)
    const n = links.length
    const quiet = { open: () => {}, hello: () => {}, goaway: () => {}, close: () => void closed.push(n) }
    const link = makeLink(socket, Buffer.alloc(0), true, quiet)
    link.hello({ version, public: { hostname: "a", url: "b", tcp_port: null } })
    links.push(link)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    links,
    closed,
    dials: () => dials,
    stop: () => {
      for (const link of links) link.close("the test is over")
      server.close()
    },
  }
}
const until = (holds: () => boolean) => eventually(async () => holds(), Boolean)

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe("An agent", () => {
  const open = (options: Partial<TunnelOptions>) => {
    const told: Array<readonly [string, number]> = []
    const tunnel = connectTunnel({
      key: "svc_id_x",
      edge: "",
      port: 1,
      links: 1,
      onDisconnected: (reason, wait) => void told.push([reason, wait]),
      ...options,
    })
    return { tunnel, told }
  }

  it("waits longer after each failure, at most 30 seconds, and leaves no timer when it is closed", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1)
    vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "clearTimeout", "clearInterval"] })
    const { tunnel, told } = open({
      edge: () => {
        throw new Error("no address")
      },
    })
    for (let n = 1; n <= 8; n++) {
      await vi.waitFor(() => expect(told).toHaveLength(n))
      const [, wait] = told.at(-1)!
      await vi.advanceTimersByTimeAsync(wait)
    }
    expect(told.map(([, wait]) => wait).slice(0, 8)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect(told[0]![0]).toBe("no address")
    await tunnel.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([401, 403, 404, 410, 426])("ends after a refusal with %s, which it reports", async (status) => {
    const { url, dials, stop } = await edge(() => [status, "some_code"])
    const { tunnel, told } = open({ edge: url })
    await expect(tunnel.ready).rejects.toBeInstanceOf(TunnelRefused)
    expect(await tunnel.ended).toMatchObject({ status, code: "some_code", message: `refused with ${status}` })
    expect(told).toEqual([[`refused with ${status}`, -1]])
    expect(dials()).toBe(1)
    stop()
  })

  it.each([409, 429, 500, 503])("dials again after a refusal with %s", async (status) => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const { url, dials, stop } = await edge((n) => (n === 0 ? [status, "some_code"] : "link"))
    const { tunnel, told } = open({ edge: url })
    expect((await tunnel.ready).url).toBe("b")
    expect([dials(), told]).toEqual([2, [[`refused with ${status}`, 0]]])
    await tunnel.close()
    stop()
  })

  it("ends without another dial when its edge says that the credential was revoked", async () => {
    const { url, links, dials, stop } = await edge(() => "link")
    const { tunnel, told } = open({ edge: url })
    await tunnel.ready
    links[0]!.goaway(goaway.revoked)
    links[0]!.close("revoked")
    expect(await tunnel.ended).toMatchObject({ status: 401, message: "The credential was revoked." })
    expect([told, dials()]).toEqual([[["The credential was revoked.", -1]], 1])
    stop()
  })

  it("is disconnected when its last link is lost, not before", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const { url, links, stop } = await edge((n) => (n < 3 ? "link" : [503, "unavailable"]))
    const { tunnel, told } = open({ edge: url, links: 2 })
    await until(() => links.length === 2)
    links[1]!.close("lost")
    await until(() => links.length === 3)
    expect(told).toEqual([])
    vi.mocked(Math.random).mockReturnValue(1)
    links[2]!.close("lost")
    links[0]!.close("lost")
    await until(() => told.length > 0)
    await tunnel.close()
    stop()
  })

  it.each([
    [30_001, 0],
    [30_000, 500],
  ])("dials again at once after a link that lasted longer than 30 seconds (%s ms)", async (lasted, wait) => {
    vi.spyOn(Math, "random").mockReturnValue(1)
    let now = 0
    vi.spyOn(performance, "now").mockImplementation(() => now)
    const { url, links, stop } = await edge(() => "link")
    const { tunnel, told } = open({ edge: url })
    await tunnel.ready
    now = lasted
    links[0]!.close("lost")
    await until(() => told.length === 1)
    expect(told[0]![1]).toBe(wait)
    await tunnel.close()
    stop()
  })

  it("keeps the link of an edge that drains until another edge has accepted it", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1)
    const { url, links, closed, dials, stop } = await edge((n) => (n === 0 || n === 3 ? "link" : [503, "unavailable"]))
    const { tunnel, told } = open({ edge: url })
    await tunnel.ready
    links[0]!.goaway(goaway.drain)
    // Both refusals take longer than the agent needs to look at its links.
    await until(() => dials() === 3)
    expect([closed, told]).toEqual([[], []])
    await until(() => closed.length === 1)
    expect([links.length, closed]).toEqual([2, [0]])
    await tunnel.close()
    stop()
  })

  it("looks for another edge every half minute while each has one of its links", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5)
    const { url, stop } = await edge(() => "link")
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    let second = 0
    const { tunnel } = open({
      links: 2,
      edge: (conn) => {
        if (conn === 0) return url
        second++
        throw new TunnelRefused(409, "tunnel_duplicate_edge", "one link is here")
      },
    })
    await tunnel.ready
    await vi.advanceTimersByTimeAsync(29_999)
    expect(second).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(second).toBe(2)
    await tunnel.close()
    stop()
  })
})

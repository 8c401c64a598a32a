/** A public connection on a real socket, with routes and streams of the test. */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import type { AddressInfo } from "node:net"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import * as Listener from "@svc/tunnel-edge/edge/listening/Listener"
import { type Front, serve } from "@svc/tunnel-edge/edge/http/PublicHttp"
import type { Route } from "@svc/tunnel-edge/edge/routing/Route"
import { kind, reset } from "@svc/tunnel-edge/protocol/Manifest"
import type { Head } from "@svc/tunnel-edge/protocol/RequestHead"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { afterEach, describe, expect, it } from "vitest"
import { eventually } from "../harness/Eventually.ts"
import { holdTimers } from "../harness/HeldTimers.ts"

const ended: Array<() => void> = []
afterEach(() => ended.splice(0).forEach((end) => end()))

const request = "GET / HTTP/1.1\r\nHost: ada.example\r\n\r\n"
const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/** Serves one port. `route` and `reroute` say where the requests go; each stream is recorded. */
const serving = async (own: Partial<Front> = {}) => {
  const did: Array<string> = []
  const sockets: Array<Socket> = []
  const streams: Array<{
    onData: (bytes: Buffer) => void
    onReset: (code: number) => void
    onEnd: () => void
    onDrain: () => void
  }> = []
  const accepts = { stream: true }
  const stream = (name: string) => {
    const made = {
      write: (bytes: Buffer) => (did.push(`${name} ${bytes.toString().split("\r\n")[0]}`), accepts.stream),
      end: () => void did.push(`${name} ends`),
      reset: (code: number) => void did.push(`${name} reset ${code}`),
      delivered: () => {},
      onData: (bytes: Buffer) => void bytes,
      onReset: (code: number) => void code,
      onEnd: () => {},
      onDrain: () => {},
    }
    streams.push(made)
    return made
  }
  const to = (name: string): Route =>
    ({
      _tag: "Stream",
      caller: undefined,
      open: (of: number, meta: object) => (did.push(`open ${name} ${of} ${JSON.stringify(meta)}`), stream(name)),
      isLeaving: () => false,
      enter: () => ({
        host: () => undefined,
        ownAuthorization: () => false,
        refuses: () => undefined,
        callerOf: async () => undefined,
        allows: () => true,
        leave: () => void did.push("leave"),
      }),
      openMeter: () => ({
        count: () => true,
        onRoom: () => {},
        countRequest: () => {},
        countResponse: () => {},
        close: () => void did.push("meter closes"),
      }),
    }) as unknown as Route
  const front: Front = {
    route: async () => to("first"),
    reroute: async () => to("second"),
    failed: (_: Head, code: number) =>
      Buffer.from(`HTTP/1.1 502 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\nfailed ${code}`),
    upgraded: () => void did.push("upgraded"),
    isLink: () => false,
    link: () => void did.push("link"),
    ...own,
  }
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    serve(socket, "http", front)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  ended.push(() => server.close())
  const client = async () => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
    ended.push(() => void socket.destroy())
    let text = ""
    socket.on("data", (bytes: Buffer) => (text += bytes.toString()))
    const closed = new Promise<string | undefined>((resolve) => {
      socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code))
      socket.once("close", () => resolve(undefined))
    })
    await once(socket, "connect")
    return {
      socket,
      closed,
      text: () => text,
      has: (what: string) =>
        eventually(
          async () => text,
          (all) => all.includes(what),
        ),
    }
  }
  const has = (what: string) =>
    eventually(
      async () => did,
      (all) => all.includes(what),
    )
  return { did, has, client, streams, sockets, accepts, to }
}

describe("a public connection", () => {
  it("is forwarded to the stream of its route, and leaves the meter and the settings at its end", async () => {
    const { did, has, client, streams } = await serving()
    const { socket, has: gets } = await client()
    socket.write(request)
    await has("first GET / HTTP/1.1")
    expect(did).toEqual([`open first ${kind.http} {"peer":"127.0.0.1","proto":"http"}`, "first GET / HTTP/1.1"])
    streams[0]!.onData(Buffer.from(ok))
    await gets("ok")
    socket.resetAndDestroy()
    await has("leave")
    expect(new Set(did.slice(2))).toEqual(new Set(["leave", "meter closes", `first reset ${reset.cancel}`]))
  })

  it("moves to the next route once if its agent is not at the first one", async () => {
    const { did, has, client, streams } = await serving()
    const { socket, closed, has: gets } = await client()
    socket.write(request)
    await has("first GET / HTTP/1.1")
    streams[0]!.onReset(reset.not_here)
    await has("second GET / HTTP/1.1")
    did.length = 0
    // The first stream has nothing to do with the connection any more.
    streams[0]!.onDrain()
    socket.write(request)
    await has("second GET / HTTP/1.1")
    expect(did).toEqual(["second GET / HTTP/1.1"])
    streams[1]!.onReset(reset.not_here)
    await gets(`failed ${reset.not_here}`)
    await closed
  })

  it("is closed if its route cannot be found, and not routed if its client left", async () => {
    const failing = await serving({ route: () => Promise.reject(new Error("down")) })
    const one = await failing.client()
    one.socket.write(request)
    expect(await one.closed).toBeUndefined()
    expect(one.text()).toBe("")

    let found: (route: Route) => void = () => {}
    const late = await serving({ route: () => new Promise((resolve) => (found = resolve)) })
    const other = await late.client()
    other.socket.write(request)
    await eventually(
      async () => late.sockets.length,
      (n) => n === 1,
    )
    await eventually(
      async () => late.sockets[0]!.bytesRead,
      (n) => n === request.length,
    )
    late.sockets[0]!.destroy()
    await once(late.sockets[0]!, "close")
    found(late.to("first"))
    await new Promise((resolve) => setImmediate(resolve))
    expect(late.did).toEqual([])
  })

  it("stops reading while its stream is full", async () => {
    const { has, client, streams, sockets, accepts, did } = await serving()
    const { socket } = await client()
    accepts.stream = false
    socket.write(request)
    await has("first GET / HTTP/1.1")
    await eventually(
      async () => sockets[0]!.isPaused(),
      (is) => is,
    )
    socket.write(request)
    expect(did.filter((what) => what.startsWith("first GET"))).toHaveLength(1)
    accepts.stream = true
    streams[0]!.onDrain()
    await eventually(
      async () => did.filter((what) => what.startsWith("first GET")).length,
      (n) => n === 2,
    )
  })

  it("is reset when its stream is reset during the response, and closed when it is idle", async () => {
    const { has, client, streams, sockets } = await serving()
    const [broken, idle] = [await client(), await client()]
    broken.socket.write(request)
    await has("first GET / HTTP/1.1")
    streams[0]!.onData(Buffer.from(ok.slice(0, 20)))
    await broken.has("200 OK")
    streams[0]!.onReset(reset.link_lost)
    expect(await broken.closed).toBe("ECONNRESET")
    sockets[1]!.emit("timeout")
    expect(await idle.closed).toBeUndefined()
  })

  it("that requests a link is passed on together with the bytes after its request", async () => {
    const links: Array<[string, string]> = []
    const { client } = await serving({
      isLink: ({ target }) => target === "/link",
      link: (head, socket, rest) => {
        links.push([head.target, rest.toString()])
        // The limits of public connections do not hold for a link.
        socket.emit("timeout")
        socket.end("linked")
      },
    })
    const { socket, has } = await client()
    socket.write("GET /link HTTP/1.1\r\nHost: connect.example\r\n\r\nbehind")
    await has("linked")
    expect(links).toEqual([["/link", "behind"]])
  })
})

describe("a public connection", () => {
  it("is closed if its request is not there by the deadline", async () => {
    const timers = holdTimers("PublicHttp", Timing.lingerMillis)
    ended.push(timers.restore)
    const { client } = await serving()
    const { closed } = await client()
    await eventually(
      async () => timers.running(),
      ([millis]) => millis === Timing.headMillis,
    )
    timers.fire(Timing.headMillis)
    expect(await closed).toBeUndefined()
  })

  it("gets the whole response of the edge although it sends more than the edge needs", async () => {
    const bytes = Buffer.from("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    const { client } = await serving({ route: async () => ({ _tag: "Answer", bytes }) })
    const { socket, closed, text } = await client()
    socket.end("POST / HTTP/1.1\r\nHost: ada.example\r\nContent-Length: 9000000\r\n\r\n".padEnd(4_000_000, "x"))
    expect(await closed).toBeUndefined()
    expect(text()).toBe(bytes.toString())
  })
})

describe("the public port", () => {
  const listening = async (clear: boolean) => {
    const got: Array<string> = []
    const listener = Listener.make(selfSigned(["*.tunnel.localhost"], new Date()), clear, {
      balancers: [],
      admit: () => true,
      http: (socket, proto, begun) => {
        got.push(`${proto} ${begun?.toString()}`)
        socket.end("served")
      },
      passesThrough: async () => false,
      passthrough: () => {},
    })
    await new Promise<void>((resolve) => listener.server.listen(0, "127.0.0.1", resolve))
    ended.push(() => listener.server.close())
    const send = (text: string, ends = false) =>
      new Promise<string>((resolve) => {
        const socket = connect((listener.server.address() as AddressInfo).port, "127.0.0.1")
        let answer = ""
        socket.on("data", (bytes: Buffer) => (answer += bytes.toString()))
        socket.on("error", () => {}).on("close", () => resolve(answer))
        if (text !== "") socket.write(text)
        if (ends) socket.end()
      })
    return { got, send }
  }

  it("answers a request without TLS only if the settings allow it", async () => {
    const secure = await listening(false)
    const refused = await secure.send(request)
    expect(refused).toMatch(/^HTTP\/1\.1 400 [^]*\r\n\r\nThis port speaks TLS only\.\n$/)
    expect(secure.got).toEqual([])
    const clear = await listening(true)
    expect(await clear.send(request)).toBe("served")
    expect(clear.got).toEqual([`http ${request}`])
  })

  it("closes a connection that ends before its first byte", async () => {
    const { got, send } = await listening(true)
    expect(await send("", true)).toBe("")
    expect(got).toEqual([])
  })
})

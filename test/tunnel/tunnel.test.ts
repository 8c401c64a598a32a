import { createHash, randomBytes } from "node:crypto"
import { createServer as createHttpServer, type RequestListener, type Server } from "node:http"
import { connect, createServer, type Socket } from "node:net"
import { connectTunnel, type Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import * as Public from "../harness/Public.ts"
import { hostOf } from "../harness/Public.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { freePort } from "../harness/Ports.ts"

let service: TestService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>
let origin: Server
let originPort: number
let tunnel: Tunnel
/** Log lines of the agent about requests. */
const logLines: Array<string> = []

/** The application behind the tunnel. */
const application: RequestListener = (incoming, outgoing) => {
  const url = new URL(incoming.url ?? "/", "http://x")
  switch (url.pathname) {
    case "/echo": {
      const hash = createHash("sha256")
      let bytes = 0
      incoming.on("data", (chunk: Buffer) => {
        hash.update(chunk)
        bytes += chunk.length
      })
      incoming.on("end", () =>
        outgoing.end(JSON.stringify({ bytes, sha256: hash.digest("hex"), trailers: incoming.trailers })),
      )
      return
    }
    case "/headers":
      return void outgoing.end(JSON.stringify({ headers: incoming.headers, raw: incoming.rawHeaders }))
    case "/large": {
      const chunk = Buffer.alloc(256 * 1024, 7)
      let remaining = Number(url.searchParams.get("chunks"))
      const pour = () => {
        while (remaining > 0) {
          remaining--
          if (!outgoing.write(chunk)) return
        }
        outgoing.end()
      }
      outgoing.on("drain", pour)
      return pour()
    }
    case "/events": {
      outgoing.writeHead(200, { "content-type": "text/event-stream" })
      let n = 0
      const timer = setInterval(() => outgoing.write(`data: ${n++}\n\n`), 20)
      outgoing.on("close", () => clearInterval(timer))
      return
    }
    case "/early":
      outgoing.writeEarlyHints({ link: "</style.css>; rel=preload" })
      return void outgoing.end("after hints")
    default:
      outgoing.end(`hello ${incoming.method} ${incoming.url}`)
  }
}

beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
  origin = createHttpServer(application)
  origin.on("upgrade", (incoming, socket: Socket, head) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${incoming.headers.upgrade}\r\n\r\n`,
    )
    if (head.length > 0) socket.write(head)
    socket.pipe(socket)
  })
  originPort = await freePort()
  await new Promise<void>((resolve) => origin.listen(originPort, "127.0.0.1", resolve))
  tunnel = open(ada.secrets.identity_key, {
    port: originPort,
    onRequest: ({ line }: { line: string }) => logLines.push(line),
  })
  await tunnel.ready
})
afterAll(async () => {
  await tunnel.close()
  origin.closeAllConnections()
  origin.close()
})

const open = (key: string, more: object) =>
  connectTunnel({ key, edge: `http://connect.tunnel.localhost:${service.edgePort}`, client: "test", ...more })
const ask = (handle: string, target: string, options: Public.PublicRequest = {}) =>
  Public.fetchPublic(service.edgePort, handle, target, options)
const raw = (bytes: string | Buffer, until?: RegExp) => Public.sendRaw(service.edgePort, bytes, until)

describe("requests through the tunnel", () => {
  it("reach the agent's port with the client address from the edge and no forged fields", async () => {
    const { status, body } = await ask(ada.handle, "/headers", {
      headers: {
        "x-forwarded-for": "1.2.3.4",
        forwarded: "for=1.2.3.4",
        "svc-tunnel-handle": "x",
        "x-mine": "yes",
        "proxy-authorization": "Basic c2VjcmV0",
        connection: "close, x-hop",
        "x-hop": "secret",
      },
    })
    expect(status).toBe(200)
    const { headers } = JSON.parse(body)
    expect(headers).toMatchObject({
      host: hostOf(ada.handle),
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": hostOf(ada.handle),
      "x-mine": "yes",
    })
    expect(headers).not.toHaveProperty("forwarded")
    expect(headers).not.toHaveProperty("proxy-authorization")
    expect(headers).not.toHaveProperty("x-hop")
    expect(headers).not.toHaveProperty("svc-tunnel-handle")
  })

  it("carry bodies of any size in both directions, with trailers", async () => {
    const bytes = randomBytes(20 * 1024 * 1024)
    const sent = await ask(ada.handle, "/echo", {
      method: "POST",
      body: bytes,
      headers: { "content-length": String(bytes.length) },
    })
    expect(JSON.parse(sent.body)).toMatchObject({
      bytes: bytes.length,
      sha256: createHash("sha256").update(bytes).digest("hex"),
    })
    const chunked = await ask(ada.handle, "/echo", {
      method: "POST",
      body: bytes.subarray(0, 1_000_000),
      headers: { "transfer-encoding": "chunked", trailer: "x-sum" },
      trailers: { "x-sum": "17" },
    })
    expect(JSON.parse(chunked.body)).toMatchObject({ bytes: 1_000_000, trailers: { "x-sum": "17" } })
    const large = await ask(ada.handle, "/large?chunks=200")
    expect(large.body.length).toBe(200 * 256 * 1024)
  })

  it("keep their connection and can be pipelined", async () => {
    const one = `GET /one HTTP/1.1\r\nHost: ${hostOf(ada.handle)}\r\n\r\n`
    const last = `GET /two HTTP/1.1\r\nHost: ${hostOf(ada.handle)}\r\nConnection: close\r\n\r\n`
    const text = await raw(one + one + last)
    expect([...text.matchAll(/hello GET \/(one|two)/g)].map(([, name]) => name)).toEqual(["one", "one", "two"])
    expect(logLines.slice(-3)).toEqual(["GET /one", "GET /one", "GET /two"])
  })

  it("pass on early hints, events and client disconnects immediately", async () => {
    const hints = await raw(`GET /early HTTP/1.1\r\nHost: ${hostOf(ada.handle)}\r\nConnection: close\r\n\r\n`)
    expect(hints).toMatch(/^HTTP\/1\.1 103 [^]*HTTP\/1\.1 200 [^]*after hints/)
    const events = await raw(`GET /events HTTP/1.1\r\nHost: ${hostOf(ada.handle)}\r\n\r\n`, /data: 3/)
    expect(events).toContain("data: 0")
    const connections = () => new Promise<number>((resolve) => origin.getConnections((_, count) => resolve(count)))
    await eventually(connections, (count) => count === 0)
  })

  it("are not forwarded for clients that have already disconnected", async () => {
    for (let i = 0; i < 50; i++) {
      await new Promise<void>((resolve) => {
        const socket = connect(service.edgePort, "127.0.0.1", () => {
          socket.write(`GET /large?chunks=100000 HTTP/1.1\r\nHost: ${hostOf(ada.handle)}\r\n\r\n`)
          setImmediate(() => socket.resetAndDestroy())
        })
        socket.on("close", () => resolve())
      })
    }
    const connections = () => new Promise<number>((resolve) => origin.getConnections((_, count) => resolve(count)))
    await eventually(connections, (count) => count === 0)
  })

  it("become opaque only after a 101", async () => {
    const head = `GET /socket HTTP/1.1\r\nHost: ${hostOf(ada.handle)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
    const text = await raw(`${head}\u0001\u0002 not HTTP at all\n\n`, /not HTTP at all/)
    expect(text).toMatch(/^HTTP\/1\.1 101 /)
    expect(text).toContain("\u0001\u0002 not HTTP at all")
    // If an application does not upgrade a request, the next request reaches it normally.
    const plain = createHttpServer((_, outgoing) => outgoing.end("plain"))
    const port = await freePort()
    await new Promise<void>((resolve) => plain.listen(port, "127.0.0.1", resolve))
    const other = await makeIdentity(service.base, session)
    const second = open(other.secrets.identity_key, { port })
    await second.ready
    const host = hostOf(other.handle)
    const both = await raw(
      `GET /a HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /b HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    )
    expect([...both.matchAll(/HTTP\/1\.1 200/g)]).toHaveLength(2)
    await second.close()
    plain.close()
  })

  it("are not blocked by readers that stall", async () => {
    const stalled = Array.from({ length: 20 }, () => {
      const socket = connect(service.edgePort, "127.0.0.1", () => {
        socket.write(`GET /large?chunks=400 HTTP/1.1\r\nHost: ${hostOf(ada.handle)}\r\n\r\n`)
        socket.pause()
      })
      socket.on("error", () => {})
      return socket
    })
    for (let i = 0; i < 20; i++) expect((await ask(ada.handle, "/quick")).status).toBe(200)
    for (const socket of stalled) socket.destroy()
  })
})

describe("the TCP port", () => {
  it("carries raw bytes with half-close in both directions", async () => {
    const echo = createServer({ allowHalfOpen: true }, (socket) => {
      const chunks: Array<Buffer> = []
      socket.on("data", (chunk: Buffer) => chunks.push(chunk))
      // Responds after the client has ended its output.
      socket.on("end", () => socket.end(Buffer.concat(chunks).toString().toUpperCase()))
    })
    const port = await freePort()
    await new Promise<void>((resolve) => echo.listen(port, "127.0.0.1", resolve))
    const bob = await makeIdentity(service.base, session)
    const raw_tunnel = open(bob.secrets.identity_key, { port })
    const { tcp_port } = await raw_tunnel.ready
    expect(tcp_port).toBe(bob.identity.tunnel.port)
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect({ port: tcp_port!, host: "127.0.0.1", allowHalfOpen: true }, () =>
        socket.end("everything"),
      )
      let got = ""
      socket.on("data", (chunk) => (got += chunk.toString()))
      socket.on("end", () => resolve(got))
      socket.on("error", reject)
    })
    expect(text).toBe("EVERYTHING")
    await raw_tunnel.close()
    await eventually(
      () =>
        new Promise<string>((resolve) =>
          connect(tcp_port!, "127.0.0.1")
            .once("error", (error: any) => resolve(error.code))
            .once("connect", () => resolve("connected")),
        ),
      (outcome) => outcome === "ECONNREFUSED",
    )
    echo.close()
  })
})

describe("a name without an agent", () => {
  it("returns problems to programs, a page to browsers, the card, and 404 for an unknown name", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const offline = await ask(handle, "/")
    expect(offline.status).toBe(503)
    expect(offline.headers).toMatchObject({ "svc-tunnel-error": "tunnel_agent_offline", "retry-after": "5" })
    expect(JSON.parse(offline.body)).toMatchObject({ code: "tunnel_agent_offline", agent_hint: "wait" })
    const page = await ask(handle, "/", { headers: { accept: "text/html,*/*" } })
    expect(page.headers["content-type"]).toContain("text/html")
    const card = await ask(handle, "/.well-known/agent-card.json")
    expect(card.status).toBe(200)
    expect(JSON.parse(card.body)).toMatchObject({ name: handle, supportedInterfaces: [{ protocolBinding: "JSONRPC" }] })
    expect((await ask("nobody-here", "/")).headers["svc-tunnel-error"]).toBe("tunnel_not_found")
  })

  it("returns 502 if the local port refuses connections", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    const dead = open(secrets.identity_key, { port: await freePort() })
    await dead.ready
    expect((await ask(handle, "/")).headers["svc-tunnel-error"]).toBe("tunnel_local_refused")
    await dead.close()
  })
})

describe("refusals of the edge", () => {
  const host = () => `Host: ${hostOf(ada.handle)}\r\n`
  const cases: ReadonlyArray<readonly [string, () => string, number]> = [
    ["a bare LF", () => `GET / HTTP/1.1\n${host()}\r\n\r\n`, 400],
    ["a folded field", () => `GET / HTTP/1.1\r\n${host()}X: a\r\n b\r\n\r\n`, 400],
    ["space before the colon", () => `GET / HTTP/1.1\r\n${host()}X : a\r\n\r\n`, 400],
    ["NUL", () => `GET / HTTP/1.1\r\n${host()}X: a\0\r\n\r\n`, 400],
    [
      "a length with a coding",
      () => `POST / HTTP/1.1\r\n${host()}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
    ],
    ["two lengths", () => `POST / HTTP/1.1\r\n${host()}Content-Length: 1\r\nContent-Length: 1\r\n\r\n`, 400],
    ["a signed length", () => `POST / HTTP/1.1\r\n${host()}Content-Length: +1\r\n\r\n`, 400],
    ["another coding", () => `POST / HTTP/1.1\r\n${host()}Transfer-Encoding: gzip, chunked\r\n\r\n`, 400],
    ["a hidden coding", () => `POST / HTTP/1.1\r\n${host()}Transfer-Encoding: xchunked\r\n\r\n`, 400],
    [
      "two codings",
      () => `POST / HTTP/1.1\r\n${host()}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
    ],
    ["no Host", () => "GET / HTTP/1.1\r\n\r\n", 400],
    ["two Hosts", () => `GET / HTTP/1.1\r\n${host()}${host()}\r\n`, 400],
    ["a Host that is not the target's", () => `GET http://other.example/ HTTP/1.1\r\n${host()}\r\n`, 400],
    ["Connection naming framing", () => `GET / HTTP/1.1\r\n${host()}Connection: content-length\r\n\r\n`, 400],
    ["HTTP/1.0", () => `GET / HTTP/1.0\r\n${host()}\r\n`, 505],
    ["HTTP/2 without a word", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
    ["a head that is too large", () => `GET / HTTP/1.1\r\n${host()}X: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    ["too many fields", () => `GET / HTTP/1.1\r\n${host()}${"X: y\r\n".repeat(120)}\r\n`, 431],
    ["a target that is no path", () => `GET other.example:443 HTTP/1.1\r\n${host()}\r\n`, 400],
  ]
  it.each(cases)("%s", async (_, bytes, status) => {
    expect(await raw(bytes())).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  })

  it("include chunk extensions, malformed chunks and another Host on an established connection", async () => {
    const post = `POST /echo HTTP/1.1\r\n${host()}Transfer-Encoding: chunked\r\n\r\n`
    expect(await raw(`${post}5;x=y\r\nhello\r\n0\r\n\r\n`)).not.toMatch(/HTTP\/1\.1 200/)
    expect(await raw(`${post}-5\r\nhello\r\n0\r\n\r\n`)).not.toMatch(/HTTP\/1\.1 200/)
    const moved = await raw(
      `GET /one HTTP/1.1\r\n${host()}\r\nGET /moved HTTP/1.1\r\nHost: other.tunnel.localhost\r\n\r\n`,
    )
    expect(moved).toMatch(/hello GET \/one[^]*HTTP\/1\.1 421 /)
    expect(moved).not.toContain("/moved")
    expect(logLines).not.toContain("GET /moved")
  })
})

import { createServer, type RequestListener } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { createServer as createSocketServer, type Server, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { GuardedClient, type GuardOptions, type Resolve } from "@svc/cluster/net/GuardedClient"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Effect, Exit, Fiber, Option, Result } from "effect"
import { afterEach, describe, expect, it } from "vitest"

const servers: Array<Server> = []
const sockets: Array<Socket> = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))
})

const listening = async (server: Server): Promise<number> => {
  servers.push(server)
  server.on("connection", (socket: Socket) => sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}
const http = (listener: RequestListener) => listening(createServer(listener))

const withClient = <A, E>(
  options: Partial<GuardOptions>,
  use: (client: GuardedClient["Service"]) => Effect.Effect<A, E>,
) =>
  Effect.runPromise(
    Effect.flatMap(Effect.service(GuardedClient), use).pipe(
      Effect.result,
      Effect.provide(GuardedClient.layer({ allowPrivate: true, timeoutMillis: 500, ...options })),
    ),
  )
const post = (url: string, options: Partial<GuardOptions> = {}) =>
  withClient(options, (client) => client.post(url, { headers: { "content-type": "text/plain" }, body: "x" }))

const failure = (error: string) => ({ _tag: "Failure", failure: { error } })

/** A resolver that returns the next address for each lookup. */
const answering = (...addresses: ReadonlyArray<string>): Resolve & { asked: number } => {
  const resolve = Object.assign(
    ((_host, done) => {
      const address = addresses[Math.min(resolve.asked++, addresses.length - 1)]!
      done(null, [{ address, family: address.includes(":") ? 6 : 4 }])
    }) as Resolve,
    { asked: 0 },
  )
  return resolve
}

const unrestricted = { request: Effect.void, isPermitted: () => true }
/** Requests a whole response of at most 100 bytes. */
const ask = (url: string, options: Partial<GuardOptions> = {}) =>
  withClient(options, (client) =>
    client.ask(new URL(url), { method: "PUT", headers: { "x-given": "1" }, body: "sent", atMost: 100 }, unrestricted),
  )
const nobody: Resolve = (_, done) => done(new Error("ENOTFOUND"), [])
const empty: Resolve = (_, done) => done(null, [])
const silentNames: Resolve = () => {}

describe("A request for a whole response", () => {
  it("has the method, headers, body and query as given, and accepts no compression", async () => {
    const seen: Array<unknown> = []
    const port = await http(async (request, response) => {
      const { method, url, headers } = request
      seen.push(method, url, headers["x-given"], headers["accept-encoding"], await text(request))
      response.writeHead(201, { "x-two": ["a", "b"] }).end("told")
    })
    const answer = await ask(`http://127.0.0.1:${port}/path?query=1`)
    expect(seen).toEqual(["PUT", "/path?query=1", "1", "identity", "sent"])
    if (Result.isFailure(answer)) throw answer.failure
    const { status, headers, body } = answer.success
    expect([status, headers.get("x-two"), Buffer.from(body).toString()]).toEqual([201, "a, b", "told"])
  })

  it("is returned up to its size, in one piece or several, and fails one byte beyond", async () => {
    const port = await http(({ url }, response) => {
      const size = Number(url!.slice(1))
      response.write("a".repeat(size - 1), () => response.end("b"))
    })
    expect(await ask(`http://127.0.0.1:${port}/100`)).toMatchObject({ success: { body: { length: 100 } } })
    expect(await ask(`http://127.0.0.1:${port}/101`)).toMatchObject(failure("too_large"))
  })

  it("fails if it is cut in its head, in its body or before its length is reached", async () => {
    for (const cut of ["", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"]) {
      const port = await listening(createSocketServer((socket) => socket.once("data", () => socket.end(cut))))
      expect(await ask(`http://127.0.0.1:${port}/`), cut).toMatchObject(failure("connection"))
    }
  })

  it("fails with `timeout` if the head, the rest of the body or the address does not arrive", async () => {
    for (const part of ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"]) {
      const port = await listening(createSocketServer((socket) => socket.once("data", () => socket.write(part))))
      expect(await ask(`http://127.0.0.1:${port}/`, { timeoutMillis: 100 }), part).toMatchObject(failure("timeout"))
    }
    const guarded = { allowPrivate: false, resolve: silentNames, timeoutMillis: 50 }
    expect(await ask("https://silent.example/", guarded)).toMatchObject(failure("timeout"))
    const late = await post("https://silent.example/", guarded)
    expect(late).toMatchObject(failure("timeout"))
    expect(Result.isFailure(late) && late.failure.durationMs).toBeGreaterThanOrEqual(49)
    expect(Result.isFailure(late) && late.failure.durationMs).toBeLessThan(10_000)
  })

  it("closes its connection if its caller is interrupted", async () => {
    const came = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const port = await http(({ socket }) => {
      socket.on("close", () => closed.resolve())
      came.resolve()
    })
    const request = { method: "GET", headers: {}, atMost: 100 }
    await withClient({ timeoutMillis: 600_000 }, (client) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(client.ask(new URL(`http://127.0.0.1:${port}/`), request, unrestricted))
        yield* Effect.promise(() => came.promise)
        yield* Fiber.interrupt(fiber)
        yield* Effect.promise(() => closed.promise)
      }),
    )
  })

  it("is a redirect that is not followed", async () => {
    let followed = 0
    const inner = await http((_, response) => (followed++, response.end()))
    const port = await http((_, response) => response.writeHead(302, { location: `http://127.0.0.1:${inner}/` }).end())
    const answer = await ask(`http://127.0.0.1:${port}/`)
    expect(answer).toMatchObject({ success: { status: 302 } })
    expect(followed).toBe(0)
  })

  it("fails with the cause if nothing is connected", async () => {
    expect(await ask("http://127.0.0.1:9/")).toMatchObject(failure("connection"))
    for (const resolve of [nobody, empty])
      expect(await ask("https://nowhere.example/", { allowPrivate: false, resolve })).toMatchObject(failure("dns"))
    for (const [url, resolve] of [
      ["https://10.0.0.1/", nobody],
      ["https://inside.example/", answering("10.0.0.1")],
      // Only Development calls plain addresses.
      ["http://hooks.example/", answering("93.184.216.34")],
    ] as const)
      expect(await ask(url, { allowPrivate: false, resolve }), url).toMatchObject(failure("refused_address"))
    const secure = await listening(createSecureServer(selfSigned(["localhost"], new Date()), () => {}))
    expect(await ask(`https://127.0.0.1:${secure}/`)).toMatchObject(failure("tls"))
  })
})

describe("A WebSocket of the guarded client", () => {
  const listen = (
    url: string,
    options: Partial<GuardOptions> = {},
    request: Effect.Effect<void, "stopped"> = Effect.void,
  ) =>
    withClient(options, (client) =>
      client.listen(
        new URL(url),
        { protocols: [], headers: {}, atMost: 10, opened: () => {}, message: () => {} },
        { request, isPermitted: () => true },
      ),
    )

  it("is not opened at an address that is not allowed, without a permission, or if the handshake is rejected or redirected", async () => {
    let reached = 0
    const port = await http(({ url }, response) => {
      reached++
      response.writeHead(url === "/moved" ? 307 : 403, { location: `http://127.0.0.1:${port}/` }).end()
    })
    const guarded = { allowPrivate: false, timeoutMillis: 50 }
    expect(await listen(`http://user:pw@127.0.0.1:${port}/`)).toMatchObject(failure("refused_address"))
    expect(await listen(`https://127.0.0.1:${port}/`, guarded)).toMatchObject(failure("refused_address"))
    expect(await listen("https://nowhere.example/", { ...guarded, resolve: nobody })).toMatchObject(failure("dns"))
    expect(await listen("https://silent.example/", { ...guarded, resolve: silentNames })).toMatchObject(failure("dns"))
    expect(await listen(`http://127.0.0.1:${port}/`, {}, Effect.fail("stopped"))).toMatchObject({ failure: "stopped" })
    expect(reached).toBe(0)
    expect(await listen(`http://127.0.0.1:${port}/`)).toMatchObject({ failure: { _tag: "NotOpened", status: 403 } })
    expect(await listen(`http://127.0.0.1:${port}/moved`)).toMatchObject({
      failure: { _tag: "NotOpened", status: 307 },
    })
    expect(reached).toBe(2)
    expect(await listen("http://127.0.0.1:9/")).toMatchObject(failure("connection"))
  })

  it("is one of at most 1,000, and makes room for another at its end", async () => {
    const listening = { protocols: [], headers: {}, atMost: 1, opened: () => {}, message: () => {} }
    const outcomes = await withClient({ allowPrivate: false, resolve: silentNames, timeoutMillis: 300_000 }, (client) =>
      Effect.gen(function* () {
        const at = new URL("https://a.example/")
        const open = Effect.forkChild(client.listen(at, listening, unrestricted), { startImmediately: true })
        const many = yield* Effect.forEach(Array.from({ length: 1_001 }), () => open)
        yield* Fiber.interrupt(many[0]!)
        const last = many.slice(999).concat(yield* open)
        return last.map((fiber) => Exit.findErrorOption(fiber.pollUnsafe() ?? Exit.void))
      }),
    )
    expect(outcomes).toMatchObject({ success: [Option.none(), Option.some({ error: "connection" }), Option.none()] })
  })
})

describe("the guarded client", () => {
  it("returns the status and the duration", async () => {
    const port = await http((_, response) => response.writeHead(202).end("fine"))
    expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject({ _tag: "Success", success: { statusCode: 202 } })
  })

  it("sends nothing if the permission ends while it connects", async () => {
    const paths: Array<string> = []
    const port = await http(({ url }, response) => (paths.push(url!), response.end("fine")))
    const request = { method: "POST", headers: {}, body: "x", atMost: 100 }
    const target = (path: string) => new URL(`http://127.0.0.1:${port}${path}`)
    let permissions = 0
    const permission = (isPermitted: () => boolean, atMost: number) => ({
      request: Effect.suspend(() => (permissions++ < atMost ? Effect.void : Effect.fail("stopped" as const))),
      isPermitted,
    })
    // The process was suspended while it connected, so it requests its permission again. A stop has revoked it.
    const stopped = await withClient({}, (client) =>
      client.ask(
        target("/stopped"),
        request,
        permission(() => false, 1),
      ),
    )
    expect(stopped).toMatchObject({ _tag: "Failure", failure: "stopped" })
    permissions = 0
    // The permission had only expired, so the process gets a new one.
    const expired = await withClient({}, (client) =>
      client.ask(
        target("/expired"),
        request,
        permission(() => permissions === 2, 2),
      ),
    )
    expect(expired).toMatchObject({ _tag: "Success", success: { status: 200 } })
    expect(paths).toEqual(["/expired"])
  })

  it("never sends a request to a URL with credentials", async () => {
    let reached = 0
    const port = await http((_, response) => (reached++, response.end()))
    for (const credentials of ["user:pw", "user", ":pw"]) {
      const url = new URL(`http://${credentials}@127.0.0.1:${port}/`)
      const answer = await withClient({}, (client) =>
        client.ask(url, { method: "GET", headers: {}, atMost: 100 }, { request: Effect.void, isPermitted: () => true }),
      )
      expect(answer).toMatchObject(failure("refused_address"))
    }
    expect(reached).toBe(0)
  })

  it("returns a redirect without following it", async () => {
    let followed = 0
    const inner = await http((_, response) => (followed++, response.end()))
    const port = await http((_, response) => response.writeHead(307, { location: `http://127.0.0.1:${inner}/` }).end())
    expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject({ success: { statusCode: 307 } })
    expect(followed).toBe(0)
  })

  it("times out if a target never responds or sends its body slowly", async () => {
    const silent = await http(() => {})
    expect(await post(`http://127.0.0.1:${silent}/`)).toMatchObject(failure("timeout"))
    const dripping = await http((_, response) => {
      response.writeHead(200)
      const drip = setInterval(() => response.write("."), 50)
      response.on("close", () => clearInterval(drip))
    })
    expect(await post(`http://127.0.0.1:${dripping}/`)).toMatchObject(failure("timeout"))
  })

  it("reads a bounded part of an endless body and returns the status", async () => {
    let sent = 0
    const port = await http((_, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      const pour = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length
      }
      response.on("drain", pour)
      response.writeHead(200)
      pour()
    })
    expect(await post(`http://127.0.0.1:${port}/`, { timeoutMillis: 10_000 })).toMatchObject({
      success: { statusCode: 200 },
    })
    expect(sent).toBeLessThan(64 * 1024 * 1024)
  })

  it("shows the first kilobyte of a response", async () => {
    const port = await http(({ url }, response) => response.end("a".repeat(Number(url!.slice(1)))))
    const shown = async (size: number) => {
      const answer = await post(`http://127.0.0.1:${port}/${size}`)
      return Result.isSuccess(answer) ? answer.success.text : answer.failure
    }
    expect(await shown(0)).toBeNull()
    for (const size of [1, 1023, 1024]) expect(await shown(size)).toBe("a".repeat(size))
    expect(await shown(1025)).toBe("a".repeat(1024))
  })

  it("reports the cause of a connection failure", async () => {
    const resetting = await listening(createSocketServer((socket) => socket.resetAndDestroy()))
    expect(await post(`http://127.0.0.1:${resetting}/`)).toMatchObject(failure("connection"))
    expect(await post("http://127.0.0.1:9/")).toMatchObject(failure("connection"))
    const garbage = await listening(createSocketServer((socket) => socket.end("SSH-2.0-OpenSSH_9.9\r\n")))
    expect(await post(`http://127.0.0.1:${garbage}/`)).toMatchObject(failure("connection"))
    const secure = await listening(createSecureServer(selfSigned(["localhost"], new Date()), () => {}))
    expect(await post(`https://127.0.0.1:${secure}/`)).toMatchObject(failure("tls"))
    const plain = await http((_, response) => response.end())
    expect(await post(`https://127.0.0.1:${plain}/`)).toMatchObject(failure("tls"))
    const nowhere: Resolve = (_, done) => done(new Error("ENOTFOUND"), [])
    expect(await post("http://nowhere.example/", { resolve: nowhere, allowPrivate: false })).toMatchObject(
      failure("dns"),
    )
  })

  it("never connects to a non-public address in any notation", async () => {
    let reached = 0
    const port = await http((_, response) => (reached++, response.end()))
    for (const host of [
      "127.0.0.1",
      "2130706433",
      "0x7f.1",
      "0177.0.0.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[::127.0.0.1]",
    ]) {
      expect(await post(`http://${host}:${port}/`, { allowPrivate: false }), host).toMatchObject(
        failure("refused_address"),
      )
    }
    expect(reached).toBe(0)
  })

  it("rejects a name with one private address among public ones", async () => {
    const resolve: Resolve = (_, done) =>
      done(null, [
        { address: "93.184.216.34", family: 4 },
        { address: "10.0.0.1", family: 4 },
      ])
    expect(await post("http://mixed.example/", { resolve, allowPrivate: false })).toMatchObject(
      failure("refused_address"),
    )
  })

  it("checks the address that it connects to, not that of an earlier lookup (DNS rebinding)", async () => {
    let reached = 0
    const port = await http((_, response) => (reached++, response.end()))
    const resolve = answering("93.184.216.34", "127.0.0.1")
    expect(await post(`http://rebinding.example:${port}/`, { resolve, allowPrivate: false })).toMatchObject(
      failure("refused_address"),
    )
    expect(resolve.asked).toBe(2)
    expect(reached).toBe(0)
  })

  it("explains why a target is rejected", async () => {
    const judge = (url: string, options: Partial<GuardOptions> = {}) =>
      withClient({ allowPrivate: false, resolve: answering("93.184.216.34"), ...options }, (client) =>
        client.assertTarget(url),
      )
    expect(await judge("https://hooks.example/x")).toMatchObject({ _tag: "Success" })
    expect(await judge("http://hooks.example/x")).toMatchObject({
      failure: { message: expect.stringContaining("https") },
    })
    expect(await judge("nonsense")).toMatchObject({ failure: { message: expect.stringContaining("absolute") } })
    for (const credentials of ["user:pw", "user", ":pw"]) {
      expect(await judge(`https://${credentials}@hooks.example/`), credentials).toMatchObject({
        failure: { message: expect.stringContaining("credentials") },
      })
    }
    expect(await judge("https://hooks.example/", { resolve: answering("10.0.0.1") })).toMatchObject({
      failure: { message: expect.stringContaining("public addresses") },
    })
  })
})

/** Whole responses and WebSockets of the guarded client. */
import { createServer as createSecureServer } from "node:https"
import { createServer as createSocketServer } from "node:net"
import { text } from "node:stream/consumers"
import { type GuardOptions } from "@svc/cluster/net/GuardedClient"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Effect, Exit, Fiber, Option, Result } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import {
  closeServers,
  answering,
  ask,
  empty,
  failure,
  http,
  listening,
  nobody,
  post,
  silentNames,
  unrestricted,
  withClient,
} from "./GuardedServers.ts"

afterEach(closeServers)

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

/** What the guarded client sends, reads and rejects. */
import { createServer as createSecureServer } from "node:https"
import { createServer as createSocketServer } from "node:net"
import { type GuardOptions, type Resolve } from "@svc/cluster/net/GuardedClient"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Effect, Result } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import {
  closeServers,
  answering,
  failure,
  http,
  listening,
  nobody,
  post,
  silentNames,
  withClient,
} from "./GuardedServers.ts"

afterEach(closeServers)

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

  it("ends a request at its deadline, and does not begin it later", async () => {
    let onClosed = () => {}
    const closed = new Promise<void>((resolve) => (onClosed = resolve))
    const port = await http((_, response) => {
      response.writeHead(200)
      const drip = setInterval(() => response.write("."), 10)
      response.on("close", () => (clearInterval(drip), onClosed()))
    })
    const message = { headers: {}, body: "x" }
    const options = { timeoutMillis: 50 }
    await withClient(options, (client) =>
      Effect.andThen(
        Effect.exit(client.post(`http://127.0.0.1:${port}/`, message)),
        Effect.promise(() => closed),
      ),
    )
    // The name is resolved after the deadline.
    const lookups: Array<Parameters<Resolve>[1]> = []
    const resolve: Resolve = (_, done) => void lookups.push(done)
    const turns = async () => {
      for (let n = 0; n < 3; n++) await new Promise((turned) => setImmediate(turned))
    }
    const late = Effect.promise(async () => {
      await turns()
      lookups[0]!(null, [{ address: "93.184.216.34", family: 4 }])
      await turns()
    })
    await withClient({ ...options, allowPrivate: false, resolve }, (client) =>
      Effect.andThen(Effect.exit(client.post("https://hooks.example/", message)), late),
    )
    expect(lookups).toHaveLength(1)
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
    for (const resolve of [nobody, silentNames]) {
      expect(await judge("https://hooks.example/", { resolve, timeoutMillis: 50 })).toMatchObject({
        failure: { message: expect.stringContaining("does not resolve.") },
      })
    }
  })
})

/** A tunnel opened by the TypeScript SDK, as the public sees it. */
import { once } from "node:events"
import { createServer, type IncomingMessage, request } from "node:http"
import type { AddressInfo } from "node:net"
import { type ConnectTunnel, createClient, type OpenTunnel, type TunnelHandler } from "@agent-identity/sdk"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { signUp } from "../harness/Client.ts"
import { fetchPublic, hostOf } from "../harness/Public.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  await createClient({ key: session, baseUrl: service.base }).createIdentity("sdk-tunnel")
})

const ada = () => createClient({ key: session, baseUrl: service.base }).identity("sdk-tunnel")
let open: OpenTunnel | undefined
afterEach(() => open?.close())
const openTo = async (target: number | TunnelHandler) => (open = await ada().tunnel(target, { connectTunnel }))

const visit = (target: string, sent?: Parameters<typeof fetchPublic>[3]) =>
  eventually(
    () => fetchPublic(service.edgePort, "sdk-tunnel", target, sent),
    // Until every edge knows the link, it answers that the agent is offline.
    ({ status }) => status !== 502 && status !== 503,
  )

describe("A tunnel of the SDK", () => {
  it("gives a handler of web requests a public address", async () => {
    const tunnel = await openTo(async (request) => {
      const { pathname, searchParams, host } = new URL(request.url)
      const body = [request.method, host, pathname, searchParams.get("q"), request.headers.get("x-a")].join(" ")
      const headers = new Headers({ "content-type": "text/plain" })
      headers.append("set-cookie", "a=1")
      headers.append("set-cookie", "b=2")
      return new Response(`${body} ${await request.text()}`, { status: 201, headers })
    })
    expect(new URL(tunnel.url).hostname).toBe(tunnel.hostname)
    const got = await visit("/path?q=1", { method: "POST", headers: { "x-a": "b" }, body: "x".repeat(100_000) })
    expect(got).toMatchObject({ status: 201, headers: { "set-cookie": ["a=1", "b=2"] } })
    expect(got.body.slice(0, 60)).toMatch(/^POST sdk-tunnel\.tunnel\.localhost\S* \/path 1 b xxx/)
    expect(got.body.length).toBeGreaterThan(100_000)
    await tunnel.close()
    await expect(tunnel.ended).resolves.toBeUndefined()
  })

  it.each([
    ["passes on a body as it is read, and stops reading when the visitor leaves", Infinity],
    ["ends a body that is idle when the visitor leaves", 20],
  ])("%s", async (_, chunks) => {
    let isCancelled = false
    let left = chunks
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
      left-- > 0 ? controller.enqueue(new Uint8Array(64 * 1024)) : new Promise<void>(() => {})
    await openTo(() => new Response(new ReadableStream({ pull, cancel: () => void (isCancelled = true) })))
    const host = hostOf("sdk-tunnel")
    const leaving = request({ host: "127.0.0.1", port: service.edgePort, headers: { host } })
    leaving.end()
    const [response] = (await once(leaving, "response")) as [IncomingMessage]
    let count = 0
    for await (const chunk of response) {
      count += (chunk as Buffer).length
      if (count > 1_000_000) break
    }
    await eventually(async () => isCancelled, Boolean)
  })

  it("answers 500 if the handler fails, and continues", async () => {
    await openTo((request) => {
      if (request.url.endsWith("/bad")) throw new Error("a handler that fails")
      return new Response("good")
    })
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined)
    expect((await visit("/bad")).status).toBe(500)
    expect(log).toHaveBeenCalledWith(new Error("a handler that fails"))
    log.mockRestore()
    expect((await visit("/good")).body).toBe("good")
  })

  it("stays at its own address if a visitor names another one in the path, and aborts a body that fails", async () => {
    await openTo((request) => {
      const { host, pathname } = new URL(request.url)
      if (!pathname.endsWith("/cut")) return new Response(`${host} ${pathname}`)
      let isFirst = true
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
        if (!isFirst) throw new Error("a body that fails")
        isFirst = false
        controller.enqueue(new Uint8Array(1_000))
      }
      return new Response(new ReadableStream({ pull }))
    })
    expect((await visit("//elsewhere.example/x")).body).toMatch(
      /^sdk-tunnel\.tunnel\.localhost\S* \/elsewhere\.example\/x$/,
    )
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined)
    const host = hostOf("sdk-tunnel")
    const cut = request({ host: "127.0.0.1", port: service.edgePort, path: "/cut", headers: { host } })
    // Whether the head arrives before that is a matter of time.
    const received = new Promise((resolve, reject) => {
      cut.on("error", reject).on("response", (response) => response.toArray().then(resolve, reject))
    })
    cut.end()
    await expect(received).rejects.toMatchObject({ code: "ECONNRESET" })
    expect(log).toHaveBeenCalledWith(new Error("a body that fails"))
    log.mockRestore()
  })

  const address = { hostname: "a.t.localhost", url: "http://a.t.localhost", tcp_port: 7 }
  const drain = vi.fn(() => Promise.resolve())
  const stub: ConnectTunnel = () => ({
    ready: Promise.resolve(address),
    ended: Promise.resolve(undefined),
    close: () => Promise.resolve(),
    drain,
  })

  it("releases the body of a request that the handler does not want, and reads the scheme of the visitor", async () => {
    let given: Parameters<ConnectTunnel>[0] | undefined
    let seen: string | undefined
    const handler: TunnelHandler = async (request) => {
      seen = request.url
      await request.body!.cancel()
      return new Response("no")
    }
    const connect: ConnectTunnel = (options) => stub((given = options))
    await ada().tunnel(handler, { connectTunnel: connect })
    const released = vi.fn(async () => ({ done: true as const, value: undefined }))
    const incoming = {
      method: "POST",
      url: "/upload",
      headers: { host: "a.t.example", "x-forwarded-proto": "https" },
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false as const, value: new Uint8Array(1) }),
        return: released,
      }),
    }
    const ended = new Promise<void>((resolve) => {
      const outgoing = { writeHead: vi.fn(), write: () => true, on: vi.fn(), destroy: vi.fn(), destroyed: false }
      given!.handler!(incoming, { ...outgoing, end: () => resolve() })
    })
    await ended
    expect([seen, released.mock.calls.length]).toEqual(["https://a.t.example/upload", 1])
  })

  it("drains as long as its caller allows", async () => {
    const tunnel = await ada().tunnel(3000, { connectTunnel: stub })
    expect(tunnel).toMatchObject({ hostname: address.hostname, url: address.url, tcpPort: 7 })
    await tunnel.drain(5)
    expect(drain).toHaveBeenCalledWith(5)
  })

  it("gives a port a public address", async () => {
    const server = createServer((request, response) => response.end(`port ${request.url}`))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    await openTo((server.address() as AddressInfo).port)
    expect((await visit("/x")).body).toBe("port /x")
    server.closeAllConnections()
    server.close()
  })

  it("ends with the reason if the credential is revoked", async () => {
    const holder = createClient({ key: session, baseUrl: service.base })
    const { key, api_key } = await holder.apiKeys.create({ name: "for a tunnel" })
    open = await createClient({ key, baseUrl: service.base })
      .identity("sdk-tunnel")
      .tunnel(() => new Response(""), { connectTunnel })
    await holder.apiKeys.revoke({ id: api_key.id })
    await expect(open.ended).rejects.toMatchObject({ name: "AuthenticationError", status: 401 })
  })

  it("names the package that it needs", async () => {
    await expect(ada().tunnel(3000)).rejects.toThrow("npm install @agent-identity/tunnel")
  })
})

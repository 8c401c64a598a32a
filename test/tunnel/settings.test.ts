import { once } from "node:events"
import { createServer as createHttpServer, type RequestListener, type Server } from "node:http"
import { createServer as createHttpsServer } from "node:https"
import { createServer } from "node:net"
import { connect as connectSecure } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { connectTunnel, type Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic, hostOf, sendRaw } from "../harness/Public.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"
import { freePort } from "../harness/Ports.ts"

const MiB = 1024 * 1024
let service: OwnService
let session: string
let origin: Server
let port: number
const tunnels: Array<Tunnel> = []

const application: RequestListener = (incoming, outgoing) => {
  const chunks = Number(new URL(incoming.url ?? "/", "http://x").searchParams.get("mib") ?? 0)
  if (chunks > 0) return void outgoing.end(Buffer.alloc(chunks * MiB))
  outgoing.end(JSON.stringify(incoming.headers))
}

const listening = async (server: Server | ReturnType<typeof createServer>) => {
  const free = await freePort()
  await new Promise<void>((resolve) => server.listen(free, "127.0.0.1", resolve))
  return free
}

beforeAll(async () => {
  service = await startService({ env: { SVC_LIMIT_TUNNEL_TRANSFER: String(4 * MiB) } })
  session = (await signUp(service.base)).session
  origin = createHttpServer(application)
  port = await listening(origin)
})
afterAll(async () => {
  for (const tunnel of tunnels) await tunnel.close()
  origin.closeAllConnections()
  origin.close()
  await service.stop()
})

const withTunnel = async (to: number, owner = session) => {
  const identity = await makeIdentity(service.base, owner)
  const tunnel = connectTunnel({
    key: identity.secrets.identity_key,
    edge: `http://connect.tunnel.localhost:${service.edgePort}`,
    port: to,
  })
  tunnels.push(tunnel)
  await tunnel.ready
  return { ...identity, tunnel }
}
const patch = (handle: string, body: unknown, token = session) =>
  call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, { token, body })
const basic = (pair: string) => ({ authorization: `Basic ${Buffer.from(pair).toString("base64")}` })

describe("tunnel settings", () => {
  it("apply to a Development edge that serves TLS and cleartext on one port", async () => {
    const { handle } = await withTunnel(port)
    const get = `GET / HTTP/1.1\r\nHost: ${hostOf(handle)}\r\nConnection: close\r\n\r\n`
    const secure = connectSecure({ port: service.edgePort, servername: hostOf(handle), rejectUnauthorized: false })
    secure.write(get)
    const [chunk] = (await once(secure, "data")) as [Buffer]
    expect(chunk.toString()).toMatch(/^HTTP\/1\.1 200 /)
    secure.destroy()
    expect(await sendRaw(service.edgePort, get)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it("change only with `If-Match`, whatever passes through the tunnel", async () => {
    const { handle, secrets } = await withTunnel(port)
    const key = secrets.identity_key
    const path = `/api/identities/${handle}/tunnel`
    const changed = (tag: string, body: unknown) =>
      call(service.base, "PATCH", path, { token: session, body, headers: { "if-match": tag } })
    const seen = (headers = {}) => call(service.base, "GET", path, { token: session, headers })
    const tag = (await seen()).headers.get("etag")!
    expect((await seen({ "if-none-match": tag })).status).toBe(304)
    // A second link does not change the Tunnel's settings, but its response contains the number of links.
    const second = connectTunnel({ key, edge: `http://connect.tunnel.localhost:${service.edgePort}`, port })
    tunnels.push(second)
    await second.ready
    expect((await seen({ "if-none-match": tag })).status).toBe(200)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => changed(tag, { allowed_networks: [`127.0.0.${n}/8`] })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 7 }, () => 412)])
    const next = answers.find(({ status }) => status === 200)!.headers.get("etag")!
    expect((await changed(next, { proxy_protocol: true })).status).toBe(200)
    expect((await changed("*", { proxy_protocol: false })).status).toBe(200)
  })

  it("select the Host that the application receives", async () => {
    const { handle } = await withTunnel(port)
    const seen = async () => JSON.parse((await fetchPublic(service.edgePort, handle, "/")).body)
    expect((await seen()).host).toBe(hostOf(handle))
    expect((await patch(handle, { host_header: "local" })).body.settings.host_header).toBe("local")
    await eventually(seen, ({ host }) => host === `localhost:${port}`)
    await patch(handle, { host_header: "shop.example:8443" })
    const { host, "x-forwarded-host": forwarded } = await eventually(
      seen,
      (headers) => headers.host !== `localhost:${port}`,
    )
    expect([host, forwarded]).toEqual(["shop.example:8443", hostOf(handle)])
  })

  it("restrict clients to the allowed networks, also on the TCP port", async () => {
    const { handle, identity } = await withTunnel(port)
    const status = async () => (await fetchPublic(service.edgePort, handle, "/")).status
    const get = `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    await patch(handle, { allowed_networks: ["192.0.2.0/24", "2001:db8::/32"] })
    await eventually(status, (now) => now === 403)
    expect(await sendRaw(identity.tunnel.port, get)).toBe("")
    await patch(handle, { allowed_networks: ["127.0.0.0/8"] })
    await eventually(status, (now) => now === 200)
    expect(await sendRaw(identity.tunnel.port, get)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it("require a user name and password, which are not forwarded", async () => {
    const { handle } = await withTunnel(port)
    const set = await patch(handle, { basic_auth: { username: "ada", password: "l0vel:ace ü" } })
    expect(set.body.settings.basic_auth).toEqual({ username: "ada" })
    expect(JSON.stringify(set.body)).not.toContain("l0vel")
    const refused = await eventually(
      () => fetchPublic(service.edgePort, handle, "/"),
      ({ status }) => status === 401,
    )
    expect(refused.headers["www-authenticate"]).toMatch(/^Basic realm=/)
    expect((await fetchPublic(service.edgePort, handle, "/", { headers: basic("ada:wrong") })).status).toBe(401)
    const allowed = await fetchPublic(service.edgePort, handle, "/", { headers: basic("ada:l0vel:ace ü") })
    expect(allowed.status).toBe(200)
    expect(JSON.parse(allowed.body)).not.toHaveProperty("authorization")
    // Each request of a connection needs the credentials. The response to an earlier request comes first.
    const { authorization } = basic("ada:l0vel:ace ü")
    const first = `GET /one HTTP/1.1\r\nHost: ${hostOf(handle)}\r\nAuthorization: ${authorization}\r\n\r\n`
    const both = await sendRaw(service.edgePort, `${first}GET /two HTTP/1.1\r\nHost: ${hostOf(handle)}\r\n\r\n`)
    expect([...both.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)).toEqual(["200", "401"])
    // Changing another setting keeps the password. Null removes it.
    await patch(handle, { host_header: "local" })
    expect((await fetchPublic(service.edgePort, handle, "/")).status).toBe(401)
    await patch(handle, { basic_auth: null })
    await eventually(
      () => fetchPublic(service.edgePort, handle, "/"),
      ({ status }) => status === 200,
    )
  })

  it("announce the client of the TCP port with the PROXY protocol", async () => {
    const lines = createServer((socket) => {
      socket.once("data", (chunk: Buffer) => socket.end(chunk.toString().split("\r\n")[0]))
    })
    const { handle, identity } = await withTunnel(await listening(lines))
    await patch(handle, { proxy_protocol: true })
    const received = await eventually(
      () => sendRaw(identity.tunnel.port, "hello\r\n"),
      (line) => line !== "hello",
    )
    expect(received).toMatch(new RegExp(`^PROXY TCP4 127\\.0\\.0\\.1 127\\.0\\.0\\.1 \\d+ ${identity.tunnel.port}$`))
    lines.close()
  })

  it("pass TLS through to the application", async () => {
    const { handle, tunnel, secrets } = await withTunnel(port)
    await tunnel.close()
    const own = selfSigned([hostOf(handle)], new Date())
    const secure = createHttpsServer(own, (_, outgoing) => outgoing.end("opened by the application"))
    const second = connectTunnel({
      key: secrets.identity_key,
      edge: `http://connect.tunnel.localhost:${service.edgePort}`,
      port: await listening(secure),
    })
    tunnels.push(second)
    await second.ready
    const over = () => fetchPublic(service.edgePort, handle, "/", { ca: own.cert }).then(({ body }) => body, String)
    expect(await over()).toContain("Error")
    await patch(handle, { tls: "passthrough" })
    expect(await eventually(over, (text) => !text.includes("Error"))).toBe("opened by the application")
    secure.closeAllConnections()
    secure.close()
  })

  it("reject invalid values and unauthorized callers", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    for (const bad of [
      { host_header: "a b" },
      { host_header: "x\r\ny" },
      { tls: "maybe" },
      { allowed_networks: ["10.0.0.0/40"] },
      { allowed_networks: ["10.1"] },
      { allowed_networks: ["everyone"] },
      { basic_auth: { username: "a:b", password: "x" } },
      { basic_auth: { username: "a" } },
      { proxy_protocol: "yes" },
      { colour: "red" },
    ]) {
      const { status, body } = await patch(handle, bad)
      expect([status, body.code], JSON.stringify(bad)).toEqual([400, "invalid_request"])
    }
    const own = secrets.identity_key
    expect((await patch(handle, { proxy_protocol: true }, own)).body.settings.proxy_protocol).toBe(true)
    expect((await patch(handle, { allowed_networks: [] }, own)).body.code).toBe("admin_required")
    expect((await patch(handle, { basic_auth: null }, own)).body.code).toBe("admin_required")
    expect((await patch("nobody-here", {})).status).toBe(404)
    const { body } = await call(service.base, "GET", `/api/identities/${handle}/tunnel`, { token: own })
    expect(body).toMatchObject({
      connected: false,
      links: [],
      usage: { bytes_in: 0, bytes_out: 0, requests: 0 },
      settings: {
        host_header: "preserve",
        tls: "terminate",
        allowed_networks: [],
        basic_auth: null,
        proxy_protocol: true,
      },
    })
  })
})

describe("the transfer limit of an Org", () => {
  it("ends transfers for the day, with one Event at 80 % and one at the limit", async () => {
    const org = (await signUp(service.base)).session
    const { handle } = await withTunnel(port, org)
    const other = await withTunnel(port, org)
    const events = async () => (await call(service.base, "GET", "/api/events", { token: org })).body.events
    const statuses: Array<number | string> = []
    while (statuses.at(-1) !== 429 && statuses.length < 40) {
      statuses.push(
        await fetchPublic(service.edgePort, handle, "/?mib=1").then(
          ({ status }) => status,
          () => "cut",
        ),
      )
    }
    // Only requests that the edge admitted from its last lease before the response arrived may exceed the limit.
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(5)
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(3)
    const blocked = await fetchPublic(service.edgePort, other.handle, "/")
    expect(blocked.status).toBe(429)
    expect(JSON.parse(blocked.body).code).toBe("tunnel_transfer_blocked")
    expect(Number(blocked.headers["retry-after"])).toBeGreaterThan(0)
    let reached = 0
    const count = () => void reached++
    origin.on("connection", count)
    expect(await sendRaw(other.identity.tunnel.port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).toBe("")
    origin.off("connection", count)
    expect(reached).toBe(0)
    const limits = (await events()).filter(
      ({ type }: any) => type === "limit.near" || type === "tunnel.transfer_blocked",
    )
    expect(limits.map(({ type, handle: of }: any) => [type, of])).toEqual([
      ["tunnel.transfer_blocked", null],
      ["limit.near", null],
    ])
    expect(limits[1].data).toMatchObject({ limit: "tunnel_transfer", quota: 4 * MiB, window: "day" })
    expect(limits[1].data.used).toBeGreaterThanOrEqual(0.8 * 4 * MiB)
    // Other Orgs are unaffected.
    const { handle: stranger } = await withTunnel(port)
    expect((await fetchPublic(service.edgePort, stranger, "/")).status).toBe(200)
  })
})

import { AgentCard } from "@a2a-js/sdk"
import { createServer, type Server } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { connectTunnel, type Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic, hostOf, sendRaw, openConnection } from "../harness/Public.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let origin: Server
const tunnels: Array<Tunnel> = []

beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  origin = createServer({ keepAliveTimeout: 60_000 }, (incoming, outgoing) =>
    outgoing.end(JSON.stringify(incoming.headers)),
  )
  origin.on("upgrade", (_, socket: Socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    socket.on("error", () => {}).pipe(socket)
  })
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve))
})
afterAll(async () => {
  for (const tunnel of tunnels) await tunnel.close()
  origin.closeAllConnections()
  origin.close()
})

const withTunnel = async () => {
  const identity = await makeIdentity(service.base, session)
  const tunnel = connectTunnel({
    key: identity.secrets.identity_key,
    edge: `http://connect.tunnel.localhost:${service.edgePort}`,
    port: (origin.address() as AddressInfo).port,
  })
  tunnels.push(tunnel)
  await tunnel.ready
  return identity
}
const patch = (handle: string, body: unknown, token = session) =>
  call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, { token, body })
const basic = (pair: string) => ({ authorization: `Basic ${Buffer.from(pair).toString("base64")}` })

describe("admission to a tunnel", () => {
  it("requires the password on every HTTP path and blocks connections that cannot present one", async () => {
    const { handle, identity } = await withTunnel()
    const get = `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const open = await openConnection(identity.tunnel.port)
    expect(await open.say(get.replace("close", "keep-alive"), /\}$/)).toMatch(/^HTTP\/1\.1 200 /)
    const both = ["/tls", "/basic_auth"]
    await patch(handle, { basic_auth: { username: "ada", password: "x" } })
    await open.closed
    await eventually(
      () => sendRaw(identity.tunnel.port, get),
      (text) => text === "",
    )
    const second = await patch(handle, { tls: "passthrough" })
    expect([second.status, second.body.code, second.body.errors.map(({ path }: any) => path)]).toEqual([
      400,
      "invalid_request",
      both,
    ])
    await patch(handle, { basic_auth: null })
    expect((await patch(handle, { tls: "passthrough" })).status).toBe(200)
    const other = await patch(handle, { basic_auth: { username: "ada", password: "x" } })
    expect([other.status, other.body.errors.map(({ path }: any) => path)]).toEqual([400, both])
    // Concurrent requests for settings that conflict: one of them is rejected.
    const identities = await Promise.all([0, 1, 2, 3].map(() => makeIdentity(service.base, session)))
    for (const { handle: one } of identities) {
      const answers = await Promise.all([
        patch(one, { tls: "passthrough" }),
        patch(one, { basic_auth: { username: "ada", password: "x" } }),
        patch(one, { proxy_protocol: true }),
      ])
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 400])
      const { body } = await call(service.base, "GET", `/api/identities/${one}/tunnel`, { token: session })
      expect(body.settings.proxy_protocol).toBe(true)
      expect(body.settings.tls === "passthrough" && body.settings.basic_auth !== null).toBe(false)
    }
  })

  it("announces the password requirement in the card", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    const read = () => call(service.base, "GET", `/api/identities/${handle}/card`, { token: session })
    const patchCard = (body: unknown) =>
      call(service.base, "PATCH", `/api/identities/${handle}/card`, { token: secrets.identity_key, body })
    const before = await read()
    expect(before.body.card).not.toHaveProperty("securitySchemes")
    await patch(handle, { basic_auth: { username: "ada", password: "x" } })
    const after = await read()
    // The card as the A2A 1.0 SDK reads it.
    const card = AgentCard.fromJSON(after.body.card)
    expect(card.securitySchemes["tunnel"]?.scheme).toMatchObject({
      $case: "httpAuthSecurityScheme",
      value: { scheme: "Basic" },
    })
    expect(card.securityRequirements).toEqual([{ schemes: { tunnel: { list: [] } } }])
    expect(after.headers.get("etag")).not.toBe(before.headers.get("etag"))
    const shown = await eventually(
      () => fetchPublic(service.edgePort, handle, "/.well-known/agent-card.json", { headers: basic("ada:x") }),
      ({ body }) => body.includes("securitySchemes"),
    )
    expect(JSON.parse(shown.body)).toEqual(after.body.card)
    // The Tunnel's password does not apply to another host.
    await patchCard({
      interfaces: [{ url: "https://elsewhere.example/", protocol_binding: "JSONRPC", protocol_version: "1.0" }],
    })
    expect((await read()).body.card).not.toHaveProperty("securitySchemes")
    await patch(handle, { basic_auth: null })
  })

  it("applies changed settings to open connections", async () => {
    const { handle } = await withTunnel()
    const get = (more = "") => `GET / HTTP/1.1\r\nHost: ${hostOf(handle)}\r\n${more}\r\n`
    const connections = await Promise.all([
      openConnection(service.edgePort),
      openConnection(service.edgePort),
      openConnection(service.edgePort),
    ])
    for (const one of connections) expect(await one.say(get(), /\}$/)).toMatch(/^HTTP\/1\.1 200 /)
    const socket = await openConnection(service.edgePort)
    await socket.say(get("Connection: Upgrade\r\nUpgrade: websocket\r\n"), /^HTTP\/1\.1 101 /)
    expect(await socket.say("echoed", /echoed/)).toBe("echoed")

    await patch(handle, { basic_auth: { username: "ada", password: "x" } })
    await socket.closed
    expect(await connections[0]!.say(get(), /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 401 /)
    const shown = `Authorization: ${basic("ada:x").authorization}\r\n`
    const answer = await connections[1]!.say(get(shown), /\}$/)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).not.toContain("authorization")
    expect(await connections[1]!.say(get(shown), /\}$/)).toMatch(/^HTTP\/1\.1 200 /)
    await patch(handle, { basic_auth: { username: "ada", password: "another" } })
    await eventually(
      () => fetchPublic(service.edgePort, handle, "/", { headers: basic("ada:x") }),
      ({ status }) => status === 401,
    )
    expect(await connections[1]!.say(get(shown), /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 401 /)
    await patch(handle, { basic_auth: null, allowed_networks: ["192.0.2.0/24"] })
    await eventually(
      () => fetchPublic(service.edgePort, handle, "/"),
      ({ status }) => status === 403,
    )
    expect(await connections[2]!.say(get(), /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 403 /)
  })

  it("closes raw connections whose network is no longer allowed", async () => {
    const { handle, identity } = await withTunnel()
    const held = await openConnection(identity.tunnel.port)
    expect(await held.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n", /\}$/)).toMatch(/^HTTP\/1\.1 200 /)
    await patch(handle, { allowed_networks: ["127.0.0.0/8"] })
    expect(await held.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n", /\}$/)).toMatch(/^HTTP\/1\.1 200 /)
    await patch(handle, { allowed_networks: ["192.0.2.0/24"] })
    await held.closed
  })

  it("allows ten password guesses a minute", async () => {
    const { handle } = await withTunnel()
    const { handle: other } = await withTunnel()
    for (const one of [handle, other]) await patch(one, { basic_auth: { username: "ada", password: "right" } })
    const guess = (of: string, pair: string) => fetchPublic(service.edgePort, of, "/", { headers: basic(pair) })
    await eventually(
      () => fetchPublic(service.edgePort, handle, "/"),
      ({ status }) => status === 401,
    )
    for (let n = 0; n < 10; n++) expect((await guess(handle, `ada:${n}`)).status).toBe(401)
    const braked = await guess(handle, "ada:right")
    expect([braked.status, JSON.parse(braked.body).code]).toEqual([429, "rate_limited"])
    expect(Number(braked.headers["retry-after"])).toBeGreaterThan(0)
    // A request without a password gets 401, and other tunnels are unaffected.
    expect((await fetchPublic(service.edgePort, handle, "/")).status).toBe(401)
    expect((await guess(other, "ada:right")).status).toBe(200)
  })
})

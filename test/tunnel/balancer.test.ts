/** An edge behind a load balancer: only the balancer may state the address of a client. */
import { createServer as createHttpServer, type Server } from "node:http"
import { connect } from "node:net"
import { connect as connectSecure } from "node:tls"
import { connectTunnel, type Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { hostOf, sendRaw } from "../harness/Public.ts"
import { freePort } from "../harness/Ports.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

/** The address from which the balancer connects; the agent and other clients connect from 127.0.0.1. */
const balancer = "127.0.0.2"
const client = "203.0.113.7"
const header = (address: string) => `PROXY TCP4 ${address} 10.0.0.1 40000 443\r\n`

let service: OwnService
let origin: Server
let tunnel: Tunnel
let handle: string
let tcpPort: number

/** Sends bytes from the balancer's address, in plain text or with TLS after the header, and returns the response. */
const throughBalancer = (port: number, first: string, then: string, secure = false) =>
  new Promise<string>((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: balancer })
    let text = ""
    socket.on("error", () => {}).on("close", () => resolve(text))
    socket.write(first)
    const speaking = secure
      ? connectSecure({ socket, servername: hostOf(handle), rejectUnauthorized: false }).on("error", () => {})
      : socket
    speaking.write(then)
    speaking.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
    speaking.on("end", () => socket.destroy())
  })

const get = () => `GET / HTTP/1.1\r\nHost: ${hostOf(handle)}\r\nConnection: close\r\n\r\n`

beforeAll(async () => {
  service = await startService({ env: { SVC_PROXY_PROTOCOL_FROM: balancer } })
  const { session } = await signUp(service.base)
  origin = createHttpServer((request, response) => response.end(JSON.stringify(request.headers)))
  const port = await freePort()
  await new Promise<void>((resolve) => origin.listen(port, "127.0.0.1", resolve))
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  tcpPort = made.identity.tunnel.port
  tunnel = connectTunnel({
    key: made.secrets.identity_key,
    edge: `http://connect.tunnel.localhost:${service.edgePort}`,
    port,
  })
  await tunnel.ready
  await call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, {
    token: session,
    body: { allowed_networks: ["203.0.113.0/24"] },
  })
  await eventually(
    () => sendRaw(service.edgePort, get()),
    (text) => text.startsWith("HTTP/1.1 403"),
  )
})
afterAll(async () => {
  await tunnel.close()
  origin.closeAllConnections()
  origin.close()
  await service.stop()
})

describe.skipIf(process.platform !== "linux")("an edge behind a load balancer", () => {
  it.each([false, true])("uses the client address from the PROXY header (TLS: %s)", async (secure) => {
    const answer = await throughBalancer(service.edgePort, header(client), get(), secure)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toContain(`"x-forwarded-for":"${client}"`)
    const stranger = await throughBalancer(service.edgePort, header("198.51.100.1"), get(), secure)
    expect(stranger).toMatch(/^HTTP\/1\.1 403 /)
  })

  it("uses the PROXY header on TCP ports", async () => {
    const plain = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    expect(await throughBalancer(tcpPort, header(client), plain)).toMatch(/^HTTP\/1\.1 200 /)
    expect(await throughBalancer(tcpPort, header("198.51.100.1"), plain)).toBe("")
  })

  it("closes a balancer's connection without a PROXY header", async () => {
    expect(await throughBalancer(service.edgePort, "", get())).toBe("")
    expect(await throughBalancer(tcpPort, "", get())).toBe("")
  })

  it("rejects a PROXY header from any other address", async () => {
    expect(await sendRaw(service.edgePort, header(client) + get())).not.toMatch(/^HTTP\/1\.1 200 /)
  })
})

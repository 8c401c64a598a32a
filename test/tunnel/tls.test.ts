import { request } from "node:https"
import { connect } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"

const wildcard = selfSigned(["*.tunnel.localhost", "connect.tunnel.localhost"], new Date())
let service: TestService
let session: string
beforeAll(async () => {
  service = await startService({ env: { SVC_EDGE_TLS_CERT: wildcard.cert, SVC_EDGE_TLS_KEY: wildcard.key } })
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const get = (servername: string, host: string) =>
  new Promise<{ status: number; body: string }>((resolve, reject) => {
    request(
      {
        host: "127.0.0.1",
        port: service.edgePort,
        path: "/",
        agent: false,
        servername,
        ca: wildcard.cert,
        headers: { host },
      },
      (incoming) => {
        let body = ""
        incoming.on("data", (chunk: Buffer) => (body += chunk.toString()))
        incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, body }))
      },
    )
      .on("error", reject)
      .end()
  })

describe("an edge with a wildcard certificate", () => {
  it("carries link and public requests over TLS, HTTP/1.1 only, each for the name it was opened for", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: `https://connect.tunnel.localhost:${service.edgePort}`,
      ca: wildcard.cert,
      handler: (incoming, outgoing) => outgoing.end(`proto ${incoming.headers["x-forwarded-proto"]}`),
    })
    await tunnel.ready
    const host = `${handle}.tunnel.localhost`
    expect(await get(host, host)).toEqual({ status: 200, body: "proto https" })
    expect((await get("other.tunnel.localhost", host)).status).toBe(421)
    const protocol = await new Promise<string | false | null>((resolve) => {
      const socket = connect(
        {
          port: service.edgePort,
          host: "127.0.0.1",
          servername: host,
          ca: wildcard.cert,
          ALPNProtocols: ["http/1.1", "h2"],
        },
        () => {
          resolve(socket.alpnProtocol)
          socket.destroy()
        },
      )
    })
    expect(protocol).toBe("http/1.1")
    const health = await call(service.base, "GET", "/api/healthz")
    expect(health.body.components.find(({ name }: { name: string }) => name === "edge").detail).toContain("1 links")
    await tunnel.close()
  })
})

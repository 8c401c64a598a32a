import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { connect as connectPlain, type Socket } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { connect } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic } from "../harness/Public.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"
import { freePort } from "../harness/Ports.ts"

const wildcard = selfSigned(["*.tunnel.localhost", "connect.tunnel.localhost"], new Date())
let service: OwnService
let session: string
beforeAll(async () => {
  service = await startService({ env: { SVC_EDGE_TLS_CERT: wildcard.cert, SVC_EDGE_TLS_KEY: wildcard.key } })
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const get = (servername: string, handle: string) =>
  fetchPublic(service.edgePort, handle, "/", { ca: wildcard.cert, servername })

describe("an edge with a wildcard certificate", () => {
  it("serves links and requests over TLS with HTTP/1.1 only, each for its own server name", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: `https://connect.tunnel.localhost:${service.edgePort}`,
      ca: wildcard.cert,
      handler: (incoming, outgoing) => outgoing.end(`proto ${incoming.headers["x-forwarded-proto"]}`),
    })
    await tunnel.ready
    const host = `${handle}.tunnel.localhost`
    expect(await get(host, handle)).toMatchObject({ status: 200, body: "proto https" })
    expect((await get("other.tunnel.localhost", handle)).status).toBe(421)
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

  it("resets a connection with a truncated response, so that no client takes it for complete", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    const reset: Array<() => void> = []
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: `https://connect.tunnel.localhost:${service.edgePort}`,
      ca: wildcard.cert,
      handler: (_, outgoing) => {
        // A response without a length ends when the connection is closed, as in HTTP/1.0.
        outgoing.removeHeader("transfer-encoding")
        outgoing.write("half")
        reset.push(() => outgoing.socket!.resetAndDestroy())
      },
    })
    await tunnel.ready
    const servername = `${handle}.tunnel.localhost`
    const ended = new Promise<string>((resolve) => {
      const client = connect({ port: service.edgePort, host: "127.0.0.1", servername, ca: wildcard.cert }, () =>
        client.write(`GET / HTTP/1.1\r\nHost: ${servername}\r\n\r\n`),
      )
      client.on("data", (chunk: Buffer) => chunk.includes("half") && reset.shift()!())
      client.on("error", (error: NodeJS.ErrnoException) => resolve(String(error.code)))
      client.on("end", () => resolve("end"))
    })
    expect(await ended).toBe("ECONNRESET")
    await tunnel.close()
  })

  it("accepts agents behind proxies, over WebSocket and through CONNECT", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    let through = 0
    const proxy = createServer().on("connect", (incoming, client: Socket) => {
      through++
      const [, port] = incoming.url!.split(":")
      const server = connectPlain(Number(port), "127.0.0.1", () => {
        client.write("HTTP/1.1 200 Connection Established\r\n\r\n")
        client.pipe(server).pipe(client)
      })
      server.on("error", () => client.destroy())
      client.on("error", () => server.destroy())
    })
    const proxyPort = await freePort()
    await new Promise<void>((resolve) => proxy.listen(proxyPort, "127.0.0.1", resolve))
    process.env["HTTPS_PROXY"] = `http://127.0.0.1:${proxyPort}`
    try {
      for (const carrier of ["auto", "websocket"] as const) {
        const tunnel = connectTunnel({
          key: secrets.identity_key,
          edge: `https://connect.tunnel.localhost:${service.edgePort}`,
          ca: wildcard.cert,
          carrier,
          links: 1,
          handler: (incoming, outgoing) => {
            outgoing.write(carrier)
            incoming.pipe(outgoing)
          },
        })
        await tunnel.ready
        const host = `${handle}.tunnel.localhost`
        const body = "x".repeat(3_000_000)
        const answer = await fetchPublic(service.edgePort, handle, "/", {
          ca: wildcard.cert,
          method: "POST",
          body,
          servername: host,
        })
        expect(answer.body).toBe(carrier + body)
        await tunnel.close()
      }
    } finally {
      delete process.env["HTTPS_PROXY"]
      proxy.closeAllConnections()
      proxy.close()
    }
    expect(through).toBe(2)
  })

  it("switches to WebSocket when an intermediary blocks other upgrades", async () => {
    const { handle, secrets } = await makeIdentity(service.base, session)
    // A proxy that intercepts TLS and supports only WebSocket upgrades, as in some offices.
    const seen: Array<string | undefined> = []
    const between = createSecureServer(wildcard, (_, outgoing) => outgoing.writeHead(400).end("<h1>Bad request</h1>"))
    between.on("upgrade", (incoming, client: Socket, head) => {
      const { upgrade } = incoming.headers
      seen.push(upgrade)
      if (upgrade !== "websocket") return client.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
      const server = connect(
        { port: service.edgePort, host: "127.0.0.1", servername: "connect.tunnel.localhost", ca: wildcard.cert },
        () => {
          const lines = [`GET ${incoming.url} HTTP/1.1`]
          for (let i = 0; i < incoming.rawHeaders.length; i += 2)
            lines.push(`${incoming.rawHeaders[i]}: ${incoming.rawHeaders[i + 1]}`)
          server.write(`${lines.join("\r\n")}\r\n\r\n`)
          server.write(head)
          client.pipe(server).pipe(client)
        },
      )
      server.on("error", () => client.destroy())
      client.on("error", () => server.destroy())
    })
    const port = await freePort()
    await new Promise<void>((resolve) => between.listen(port, "127.0.0.1", resolve))
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: `https://connect.tunnel.localhost:${port}`,
      ca: wildcard.cert,
      links: 1,
      handler: (_, outgoing) => outgoing.end("over WebSocket"),
    })
    await tunnel.ready
    expect((await fetchPublic(service.edgePort, handle, "/", { ca: wildcard.cert })).body).toBe("over WebSocket")
    expect(seen).toEqual(["idt/1", "websocket"])
    await tunnel.close()
    between.closeAllConnections()
    between.close()
  })

  it("loads a renewed certificate", async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "svc-certificate-"))
    const [cert, key] = [path.join(directory, "cert.pem"), path.join(directory, "key.pem")]
    const put = (certificate: { readonly cert: string; readonly key: string }) => {
      writeFileSync(key, certificate.key)
      writeFileSync(cert, certificate.cert)
    }
    put(wildcard)
    const other = await startService({ env: { SVC_EDGE_TLS_CERT: cert, SVC_EDGE_TLS_KEY: key } })
    const serial = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connect(
          { port: other.edgePort, host: "127.0.0.1", servername: "a.tunnel.localhost", rejectUnauthorized: false },
          () => {
            resolve(socket.getPeerCertificate().serialNumber)
            socket.destroy()
          },
        ).on("error", reject)
      })
    const before = await serial()
    put(selfSigned(["*.tunnel.localhost"], new Date()))
    await eventually(serial, (now) => now !== before)
    await other.stop()
    rmSync(directory, { recursive: true })
  })
})

import { once } from "node:events"
import { createServer, type Server } from "node:http"
import { connect } from "node:net"
import { connectTunnel, type Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic, sendRaw } from "../harness/Public.ts"
import { eventually } from "../harness/Service.ts"
import { deploy, type Deployment, type Process } from "../harness/Deployment.ts"
import { freePort } from "../harness/Ports.ts"

let deployment: Deployment
let api: Process
let edges: ReadonlyArray<Process>
let session: string
let origin: Server
let port: number
const tunnels: Array<Tunnel> = []

beforeAll(async () => {
  deployment = await deploy()
  api = await deployment.start(["api", "actors"])
  edges = await Promise.all([deployment.start(["edge"]), deployment.start(["edge"]), deployment.start(["edge"])])
  session = (await signUp(api.base)).session
  origin = createServer((incoming, outgoing) => outgoing.end(`origin ${incoming.headers.host}`))
  port = await freePort()
  await new Promise<void>((resolve) => origin.listen(port, "127.0.0.1", resolve))
})
afterAll(async () => {
  await Promise.all(tunnels.map((tunnel) => tunnel.close()))
  origin.close()
  await deployment.stop()
})

/** Opens a Tunnel whose link `conn` first dials the edge at the index `places[conn]` and then the following ones. */
const open = (key: string, more: object = {}, places: ReadonlyArray<number> = [0, 1]) => {
  const tries = new Map<number, number>()
  const tunnel = connectTunnel({
    key,
    edge: (conn) => {
      const at = tries.get(conn) ?? 0
      tries.set(conn, at + 1)
      return `http://connect.tunnel.localhost:${edges[places[(conn + at) % places.length]!]!.edgePort}`
    },
    port,
    ...more,
  })
  tunnels.push(tunnel)
  return tunnel
}
const linksOf = async (handle: string) =>
  (await call(api.base, "GET", `/api/identities/${handle}/tunnel`, { token: session })).body.links
const two = (links: ReadonlyArray<{ edge: string }>) => new Set(links.map(({ edge }) => edge)).size === 2
const through = (edge: number, handle: string) =>
  fetchPublic(edges[edge]!.edgePort, handle, "/").then(({ status, body }) => `${status} ${body}`, String)

describe("three edges", () => {
  it("serve an agent with links to two of them, and the third forwards in one hop", async () => {
    const { handle, secrets } = await makeIdentity(api.base, session)
    await open(secrets.identity_key).ready
    await eventually(() => linksOf(handle), two)
    for (const edge of [0, 1, 2]) expect(await through(edge, handle)).toBe(`200 origin ${handle}.tunnel.localhost`)
    // Settings of the API apply at every edge, also if the host header is that of the agent's local port.
    await call(api.base, "PATCH", `/api/identities/${handle}/tunnel`, {
      token: session,
      body: { host_header: "local" },
    })
    for (const edge of [0, 1, 2]) {
      await eventually(
        () => through(edge, handle),
        (text) => text === `200 origin localhost:${port}`,
      )
    }
    const usage = async () =>
      (await call(api.base, "GET", `/api/identities/${handle}/tunnel`, { token: session })).body.usage
    // Requests count once, at the edge that received them from the client.
    const expected = 3 + 3
    expect((await eventually(usage, ({ requests }) => requests >= expected)).requests).toBeLessThan(expected + 20)
  })

  it("all notice that a newer process of the agent took over", async () => {
    const { handle, secrets } = await makeIdentity(api.base, session)
    const older = open(secrets.identity_key, { handler: (_: unknown, out: any) => out.end("older") })
    await older.ready
    await eventually(() => linksOf(handle), two)
    const newer = open(secrets.identity_key, { handler: (_: unknown, out: any) => out.end("newer") }, [2])
    await newer.ready
    await older.ended
    for (const edge of [0, 1, 2]) expect(await through(edge, handle)).toBe("200 newer")
    expect(await linksOf(handle)).toHaveLength(1)
  })

  it("refuse a second link of the same process and agents of another protocol version", async () => {
    const { secrets } = await makeIdentity(api.base, session)
    const upgrade = (token: string, conn: number) =>
      [
        "GET /v1/tunnel HTTP/1.1",
        "Host: connect.tunnel.localhost",
        "Connection: Upgrade",
        `Upgrade: ${token}`,
        `Authorization: Bearer ${secrets.identity_key}`,
        "svc-tunnel-instance: the same",
        `svc-tunnel-conn: ${conn}`,
        "\r\n",
      ].join("\r\n")
    expect(await sendRaw(edges[1]!.edgePort, upgrade("idt/0", 0))).toMatch(
      /^HTTP\/1\.1 426 [^]*"tunnel_client_outdated"/,
    )
    const first = connect(edges[1]!.edgePort, "127.0.0.1", () => first.write(upgrade("idt/1", 0)))
    const [answer] = (await once(first, "data")) as [Buffer]
    expect(answer.toString("latin1")).toMatch(/^HTTP\/1\.1 101 /)
    expect(await sendRaw(edges[1]!.edgePort, upgrade("idt/1", 1))).toMatch(
      /^HTTP\/1\.1 409 [^]*"tunnel_duplicate_edge"/,
    )
    // A WebSocket handshake that fails after the lease was acquired releases the lease.
    const broken = upgrade("websocket", 0).replace("\r\n\r\n", "\r\nSec-WebSocket-Protocol: idt.1\r\n\r\n")
    const other = await makeIdentity(api.base, session)
    expect(await sendRaw(edges[1]!.edgePort, broken.replace(secrets.identity_key, other.secrets.identity_key))).toMatch(
      /^HTTP\/1\.1 400 /,
    )
    await eventually(
      () => linksOf(other.handle),
      (links) => links.length === 0,
    )
    // The edge may close the first link before it responds to the second one.
    const closed = once(first, "close")
    // If a link dials again, the edge has not noticed the end of the former link yet.
    expect(await sendRaw(edges[1]!.edgePort, upgrade("idt/1", 0), /101/)).toMatch(/^HTTP\/1\.1 101 /)
    await closed
  })

  it("keep serving after one is killed, also on the TCP port", async () => {
    const { handle, secrets, identity } = await makeIdentity(api.base, session)
    await open(secrets.identity_key).ready
    await eventually(() => linksOf(handle), two)
    edges[0]!.signal("SIGKILL")
    await edges[0]!.exited
    // The edge with the other link is unaffected, and the third edge finds that link.
    expect(await through(1, handle)).toMatch(/^200 /)
    await eventually(
      () => through(2, handle),
      (text) => text.startsWith("200 "),
    )
    // One edge has listened on the port; the other edges knew that this edge owned it.
    await eventually(
      () => sendRaw(identity.tunnel.port, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
      (text) => text.startsWith("HTTP/1.1 200 "),
      30,
    )
    expect((await call(api.base, "GET", `/api/identities/${handle}`, { token: session })).body.tunnel.port).toBe(
      identity.tunnel.port,
    )
  })

  it("can share one port and still reach each other", async () => {
    const shared = { SVC_EDGE_PORT: String(await freePort()), SVC_EDGE_SHARE_PORT: "true" }
    await Promise.all([deployment.start(["edge"], shared), deployment.start(["edge"], shared)])
    const { handle, secrets } = await makeIdentity(api.base, session)
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: `http://connect.tunnel.localhost:${shared.SVC_EDGE_PORT}`,
      port,
      links: 1,
    })
    tunnels.push(tunnel)
    await tunnel.ready
    // The kernel distributes connections. Some arrive at the edge without the link, which forwards them once.
    const statuses = await Promise.all(
      Array.from({ length: 40 }, () =>
        fetchPublic(Number(shared.SVC_EDGE_PORT), handle, "/").then(({ status }) => status),
      ),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
  })
})

import { createServer } from "node:net"
import { connectTunnel, type Tunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sendRaw } from "../harness/Public.ts"
import { eventually, type OwnService, startService } from "../harness/Service.ts"

let service: OwnService
let session: string
const tunnels: Array<Tunnel> = []
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(async () => {
  await Promise.all(tunnels.map((tunnel) => tunnel.close()))
  await service.stop()
})

it("a TCP port that another program holds is reported and replaced", async () => {
  const { handle, identity, secrets } = await makeIdentity(service.base, session)
  const { port } = identity.tunnel
  const stranger = createServer((socket) => socket.end("a stranger"))
  await new Promise<void>((resolve) => stranger.listen(port, "127.0.0.1", resolve))
  const agent = createServer((socket) => socket.on("data", () => socket.end("the agent")))
  await new Promise<void>((resolve) => agent.listen(0, "127.0.0.1", resolve))
  const address = agent.address()
  const notices: Array<string> = []
  const tunnel = connectTunnel({
    key: secrets.identity_key,
    edge: `http://connect.tunnel.localhost:${service.edgePort}`,
    port: typeof address === "object" && address !== null ? address.port : 0,
    onNotice: (text) => notices.push(text),
  })
  tunnels.push(tunnel)
  await tunnel.ready
  const read = async (): Promise<number> =>
    (await call(service.base, "GET", `/api/identities/${handle}`, { token: session })).body.tunnel.port
  const next = await eventually(read, (now) => now !== port)
  await eventually(
    () => sendRaw(next, "hello"),
    (text) => text === "the agent",
  )
  await eventually(
    async () => notices.length,
    (count) => count === 1,
  )
  expect(notices[0]).toContain(`TCP port ${port} of ${handle} is held by another program`)
  expect(notices[0]).toContain(String(next))
  const health = await call(service.base, "GET", "/api/healthz")
  expect(health.body.status).toBe("warn")
  expect(health.body.components.find(({ name }: any) => name === "edge")).toMatchObject({
    status: "warn",
    detail: expect.stringContaining(String(port)),
  })
  // The released port is not assigned to the next Identity.
  const other = await makeIdentity(service.base, session)
  expect(other.identity.tunnel.port).not.toBe(port)
  stranger.close()
  agent.close()
})

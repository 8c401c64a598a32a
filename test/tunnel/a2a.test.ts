import { DefaultAgentCardResolver } from "@a2a-js/sdk/client"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { beforeAll, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { agent, talk, viaLoopback } from "./A2aAgents.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

it("an A2A client finds an agent by its card and talks to it through the tunnel", async () => {
  const { session } = await signUp(service.base)
  const { handle, secrets } = await makeIdentity(service.base, session)
  const card = await new DefaultAgentCardResolver().resolve(service.base, `/@${handle}/agent-card.json`)
  const tunnel = connectTunnel({
    key: secrets.identity_key,
    edge: `http://connect.tunnel.localhost:${service.edgePort}`,
    handler: agent(card),
  })
  const { url } = await tunnel.ready
  expect(card.supportedInterfaces).toMatchObject([{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }])
  expect(await talk(card, "hello ada", viaLoopback)).toBe("HELLO ADA")
  await tunnel.close()
})

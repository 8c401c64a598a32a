import type { AgentCard, Message } from "@a2a-js/sdk"
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client"
import {
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from "@a2a-js/sdk/server"
import type { RequestListener } from "node:http"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic } from "../harness/Public.ts"
import { startService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const textOf = (message: Message) =>
  message.parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("")
const messageOf = (text: string, role: number): Message => ({
  messageId: `m-${text.length}`,
  contextId: "",
  taskId: "",
  role,
  parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

/** An agent as users of the A2A SDK write it. */
const agent = (card: AgentCard): RequestListener => {
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), {
    execute: async ({ userMessage }, bus) => {
      bus.publish({ kind: "message", data: messageOf(textOf(userMessage).toUpperCase(), 2) })
      bus.finished()
    },
    cancelTask: async () => {},
  })
  const transport = new JsonRpcTransportHandler(handler)
  return (incoming, outgoing) => {
    let body = ""
    incoming.on("data", (chunk: Buffer) => (body += chunk.toString()))
    incoming.on("end", async () => {
      const answer = await transport.handle(body, new ServerCallContext({ requestedVersion: "1.0" }))
      outgoing.setHeader("content-type", "application/json").end(JSON.stringify(answer))
    })
  }
}

/** Resolves `*.localhost` to this machine, regardless of the system's resolver. */
const viaLoopback = (async (input: string | URL | Request, init?: RequestInit) => {
  const url = new URL(input instanceof Request ? input.url : input)
  const answer = await fetchPublic(Number(url.port), "", url.pathname + url.search, {
    method: init?.method ?? "GET",
    headers: { ...Object.fromEntries(new Headers(init?.headers)), host: url.host },
    ...(typeof init?.body === "string" ? { body: init.body } : {}),
  })
  return new Response(answer.body, {
    status: answer.status,
    headers: { "content-type": String(answer.headers["content-type"]) },
  })
}) as typeof fetch

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
  const client = await new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl: viaLoopback })],
    }),
  ).createFromAgentCard(card)
  const answer = (await client.sendMessage({
    tenant: "",
    message: messageOf("hello ada", 1),
    configuration: undefined,
    metadata: undefined,
  })) as Message
  expect(textOf(answer)).toBe("HELLO ADA")
  await tunnel.close()
})

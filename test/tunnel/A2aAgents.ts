/** Agents and clients that use the A2A SDK. */
import type { AgentCard, Message } from "@a2a-js/sdk"
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from "@a2a-js/sdk/client"
import {
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from "@a2a-js/sdk/server"
import type { RequestListener } from "node:http"
import { fetchPublic } from "../harness/Public.ts"

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

/** An agent as users of the A2A SDK write it. It answers in upper case, with the caller if the edge names one. */
export const agent = (card: AgentCard): RequestListener => {
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), {
    execute: async ({ userMessage, context }, bus) => {
      const caller = context?.user?.userName ?? ""
      const answer = textOf(userMessage).toUpperCase()
      bus.publish({ kind: "message", data: messageOf(caller === "" ? answer : `${answer}, ${caller}`, 2) })
      bus.finished()
    },
    cancelTask: async () => {},
  })
  const transport = new JsonRpcTransportHandler(handler)
  return (incoming, outgoing) => {
    let body = ""
    incoming.on("data", (chunk: Buffer) => (body += chunk.toString()))
    incoming.on("end", async () => {
      const caller = incoming.headers["svc-agent"]
      const answer = await transport.handle(
        body,
        new ServerCallContext({
          requestedVersion: "1.0",
          user: { isAuthenticated: caller !== undefined, userName: String(caller ?? "") },
        }),
      )
      outgoing.setHeader("content-type", "application/json").end(JSON.stringify(answer))
    })
  }
}

/** Resolves `*.localhost` to this machine, regardless of the system's resolver. */
export const viaLoopback = (async (input: string | URL | Request, init?: RequestInit) => {
  const url = new URL(input instanceof Request ? input.url : input)
  if (!url.hostname.endsWith(".localhost")) return fetch(input, init)
  const answer = await fetchPublic(Number(url.port), "", url.pathname + url.search, {
    method: init?.method ?? "GET",
    headers: { ...Object.fromEntries(new Headers(init?.headers)), host: url.host },
    ...(init?.body == null ? {} : { body: Buffer.from(await new Response(init.body).arrayBuffer()) }),
  })
  return new Response(answer.body, {
    status: answer.status,
    headers: Object.entries(answer.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    ),
  })
}) as typeof fetch

/** Sends a message to the agent of a card with a `fetch`, and returns its reply. */
export const talk = async (card: AgentCard, text: string, fetchImpl: typeof fetch): Promise<string> => {
  const options = { transports: [new JsonRpcTransportFactory({ fetchImpl })] }
  const client = await new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, options),
  ).createFromAgentCard(card)
  const message = messageOf(text, 1)
  return textOf(
    (await client.sendMessage({ tenant: "", message, configuration: undefined, metadata: undefined })) as Message,
  )
}

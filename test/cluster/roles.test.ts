import { connect } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { deploy, type Deployment, type Process, until } from "../harness/Deployment.ts"
import { freePort } from "../harness/Ports.ts"

/** One self-signed certificate of the deployment, which is also its authority, and one of an attacker. */
const ours = selfSigned(["runner"], new Date())
const strangers = selfSigned(["runner"], new Date())
const tls = { SVC_RUNNER_TLS_CA: ours.cert, SVC_RUNNER_TLS_CERT: ours.cert, SVC_RUNNER_TLS_KEY: ours.key }

let deployment: Deployment
let api: Process
let mail: Process
let runnerPort: number
/** Differs from the default address, so that the other processes can only use the address that the actors have registered. */
const runnerHost = "127.0.0.2"

beforeAll(async () => {
  deployment = await deploy()
  runnerPort = await freePort()
  await deployment.start(["actors"], { ...tls, SVC_RUNNER_HOST: runnerHost, SVC_RUNNER_PORT: String(runnerPort) })
  ;[api, mail] = await Promise.all([deployment.start(["api"], tls), deployment.start(["mail"], tls)])
})
afterAll(() => deployment.stop(), 60_000)

/** Returns whether the runner's port accepts a client with this certificate. */
const isLetIn = (certificate: { readonly cert: string; readonly key: string } | undefined) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ port: runnerPort, host: runnerHost, ...certificate, rejectUnauthorized: false })
    // In TLS 1.3, the client's handshake completes before the server has verified the certificate. Then the server closes the connection,
    // or waits for data.
    const timer = setTimeout(() => (socket.destroy(), resolve(true)), 1_000)
    const refused = () => (clearTimeout(timer), resolve(false))
    socket.on("error", refused).on("close", refused)
  })

describe("three roles in separate processes with mutual TLS", () => {
  it("provide the same service as one process", async () => {
    const { session } = await signUp(api.base)
    const { handle } = await makeIdentity(api.base, session)
    const receiver = await startReceiver()
    const webhook = await call(api.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: session,
      body: { url: receiver.url, event_types: ["email.received"] },
    })
    await send(mail.smtpPort, {
      from: "grace@example.org",
      to: `${handle}+roles@mail.localhost`,
      subject: "hi",
      text: "x",
    })
    await until("the delivery", () => receiver.got.length > 0)
    expect(receiver.verify(webhook.body.signing_secret, receiver.got[0]!)).toMatchObject({ type: "email.received" })
    const messages = await call(api.base, "GET", `/api/identities/${handle}/messages`, { token: session })
    expect(messages.body.messages).toMatchObject([{ subject: "hi", tag: "roles" }])
    const health = await call(api.base, "GET", "/api/healthz")
    expect(health.body.components.map(({ name }: { name: string }) => name)).toContain("cluster")
    await receiver.stop()
  })

  it("forward the largest allowed post and reject a larger one", async () => {
    const { session } = await signUp(api.base)
    const { handle } = await makeIdentity(api.base, session)
    const filled = (room: number, make: (content_base64: string) => unknown) =>
      make("A".repeat(room - JSON.stringify(make("")).length))
    const post = (content_base64: string) => ({
      text: "Look",
      options: { mastodon: { media: [{ content_base64, content_type: "image/png", alt: null }] } },
    })
    const rest = async (bytes: number) => {
      const path = `/api/identities/${handle}/connectors/mastodon/posts`
      const { status, body } = await call(api.base, "POST", path, { token: session, body: filled(bytes, post) })
      return [status, body.code]
    }
    const tool = async (bytes: number) => {
      const input = filled(bytes, post) as object
      const { status, body } = await call(api.base, "POST", "/api/mcp", {
        token: session,
        body: {
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name: "svc_connector_post", arguments: { handle, platform: "mastodon", ...input } },
        },
      })
      return [status, body.result.isError, body.result.structuredContent.code]
    }
    const most = 8 * 1024 * 1024
    // The error comes from the actor in the other process, which knows that nothing is connected.
    expect(await rest(most)).toEqual([409, "connector_not_connected"])
    expect(await tool(most)).toEqual([200, true, "connector_not_connected"])
    expect(await rest(most + 1)).toEqual([413, "payload_too_large"])
    expect(await tool(most + 1)).toEqual([200, true, "payload_too_large"])
  })

  it("reject peers without a valid certificate", async () => {
    expect(await isLetIn(ours)).toBe(true)
    expect(await isLetIn(strangers)).toBe(false)
    expect(await isLetIn(undefined)).toBe(false)
  })
})

/** Subscriptions to resources through the official client of revision 2026-07-28. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { mkdtempSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { browser, obtainTokens, registerClient } from "../oauth/Consent.ts"
import { startSvc } from "../harness/Svc.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>
let bob: Awaited<ReturnType<typeof makeIdentity>>

beforeAll(async () => {
  service = await startService({ env: { SVC_LIMIT_STREAMS_CREDENTIAL: "2" } })
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
  bob = await makeIdentity(service.base, session)
})
afterAll(() => service.stop())

const api = (method: string, path: string, body?: unknown) =>
  call(service.base, method, path, { token: session, ...(body === undefined ? {} : { body }) })

/** Connects a client, and collects the addresses of its notifications. */
const connect = async (token: string) => {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } } as never)
  const headers = { authorization: `Bearer ${token}` }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${service.base}/api/mcp`), { requestInit: { headers } }) as never,
  )
  const updated: Array<string> = []
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void updated.push(params.uri))
  return {
    client,
    updated,
    listen: (uris: ReadonlyArray<string>) => client.listen({ resourceSubscriptions: [...uris] }),
  }
}

const of = (handle: string, part = "") => `svc://identities/${handle}${part}`
const rename = (handle: string, name: string) => api("PATCH", `/api/identities/${handle}/card`, { name })

describe("A subscription to resources", () => {
  it("notifies of changes of the card, of mail, and of the Identity, and of no others", async () => {
    const { client, updated, listen } = await connect(ada.secrets.identity_key)
    expect(client.getServerCapabilities()?.resources?.subscribe).toBe(true)
    const [card, messages] = [of(ada.handle, "/card"), of(ada.handle, "/messages")]
    const opened = await listen([card, messages])
    expect(opened.honoredFilter.resourceSubscriptions).toEqual([card, messages])
    await rename(bob.handle, "Bob")
    await rename(ada.handle, "Ada")
    await eventually(
      async () => updated.slice(),
      (uris) => uris.includes(card),
    )
    expect(updated).not.toContain(messages)
    await api("POST", `/api/identities/${bob.handle}/allowed-recipients`, { address: ada.identity.email })
    const mail = { to: [ada.identity.email], subject: "one", text: "hello" }
    await api("POST", `/api/identities/${bob.handle}/messages/send`, mail)
    await eventually(
      async () => updated.slice(),
      (uris) => uris.includes(messages),
    )
    expect(new Set(updated)).toEqual(new Set([card, messages]))
    await opened.close()
    await client.close()
  })

  it("of one message notifies when it is read elsewhere", async () => {
    const { client, updated, listen } = await connect(session)
    const { messages } = await eventually(
      async () => (await api("GET", `/api/identities/${ada.handle}/messages`)).body,
      (list) => list.messages.length > 0,
    )
    const uri = of(ada.handle, `/messages/${messages[0].id}`)
    const opened = await listen([uri])
    await api("PATCH", `/api/identities/${ada.handle}/messages/${messages[0].id}`, { seen: true })
    await eventually(
      async () => updated.slice(),
      (uris) => uris.includes(uri),
    )
    await opened.close()
    await client.close()
  })

  it("leaves out resources that the credential may not read, and unknown ones", async () => {
    const { client, listen } = await connect(ada.secrets.identity_key)
    const own = of(ada.handle)
    const opened = await listen([own, of(bob.handle), of("nobody"), "svc://secrets", of(ada.handle, "/messages/msg_x")])
    expect(opened.honoredFilter.resourceSubscriptions).toEqual([own])
    await opened.close()
    await client.close()
  })

  it("is bounded: 50 resources, and as many streams as a credential may open", async () => {
    const { client, listen } = await connect(bob.secrets.identity_key)
    const many = Array.from({ length: 51 }, (_, n) => of(bob.handle, `/messages/${n}`))
    await expect(listen(many)).rejects.toThrow("at most 50 addresses")
    const open = [await listen([of(bob.handle)]), await listen([of(bob.handle)])]
    await expect(listen([of(bob.handle)])).rejects.toThrow()
    await open[0]!.close()
    // The place of a closed stream is free again.
    const next = await eventually(
      () => listen([of(bob.handle)]).catch(() => undefined),
      (one) => one !== undefined,
    )
    await next!.close()
    await open[1]!.close()
    await client.close()
  })

  it("ends when the app loses the right to read a resource or its networks change, and not before", async () => {
    const { session: owner } = await signUp(service.base)
    const { handle } = await makeIdentity(service.base, owner)
    const here = "http://localhost:4711/callback"
    const app = (await registerClient(service.base, [here], "client")).body["client_id"] as string
    const { access } = await obtainTokens(service.base, browser(service.base, owner), app, here, {})
    const { grants } = (await call(service.base, "GET", "/api/grants", { token: owner })).body
    const change = (scopes: ReadonlyArray<string>) =>
      call(service.base, "PATCH", `/api/grants/${grants[0].id}`, { token: owner, body: { scopes } })
    await change(["identity:read", "card:read", "mail:read"])
    const { client, updated, listen } = await connect(access)
    const opened = await listen([of(handle, "/card")])
    let isOpen = true
    void opened.closed.then(() => (isOpen = false))
    await change(["identity:read", "card:read"])
    await eventually(
      async () => {
        await call(service.base, "PATCH", `/api/identities/${handle}/card`, { token: owner, body: { name: "Ada" } })
        return updated.length
      },
      (count) => count > 0,
    )
    expect(isOpen).toBe(true)
    await change(["identity:read"])
    expect(await opened.closed).toBe("graceful")
    await change(["identity:read", "card:read"])
    const again = await listen([of(handle, "/card")])
    const networks = ["192.0.2.0/24"]
    await call(service.base, "PATCH", `/api/grants/${grants[0].id}`, { token: owner, body: { networks } })
    expect(await again.closed).toBe("graceful")
    await client.close()
  })

  it("reaches a client of `svc mcp`, which cancels it", async () => {
    const home = mkdtempSync(path.join(os.tmpdir(), "svc-mcp-"))
    const relay = startSvc(
      { home, env: { SVC_KEY: bob.secrets.identity_key }, input: null },
      "mcp",
      "--api",
      service.base,
    )
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    }
    const say = (message: object) => relay.input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
    const filter = { resourceSubscriptions: [of(bob.handle, "/card")] }
    say({ id: "a", method: "subscriptions/listen", params: { _meta, notifications: filter } })
    const printed = (what: string) =>
      eventually(
        async () => relay.out(),
        (out) => out.includes(what),
      )
    await printed("notifications/subscriptions/acknowledged")
    await rename(bob.handle, "Robert")
    await printed("notifications/resources/updated")
    say({ method: "notifications/cancelled", params: { requestId: "a" } })
    relay.input.end()
    expect(await relay.ended).toBe(0)
    rmSync(home, { recursive: true })
  })

  it("ends with the key", async () => {
    const made = await api("POST", `/api/identities/${ada.handle}/keys`, { name: "short" })
    const { client, listen } = await connect(made.body.key)
    const opened = await listen([of(ada.handle, "/card")])
    await api("DELETE", `/api/keys/${made.body.api_key.id}`)
    expect(await opened.closed).toBe("graceful")
    await client.close()
  })
})

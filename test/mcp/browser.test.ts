/** MCP clients in a browser: pages of another origin with the service's metadata, registration and tools. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { closeContexts, openBrowser } from "../harness/Browser.ts"
import { call, signUp } from "../harness/Client.ts"
import { has } from "../harness/Programs.ts"
import { startService, type OwnService } from "../harness/Service.ts"

describe.skipIf(!has("chromium"))("An MCP client in a page of another origin", () => {
  let service: OwnService
  let chromium: Browser
  let app: Server
  let port: number
  let session: string
  beforeAll(async () => {
    app = createServer((_, response) => response.setHeader("content-type", "text/html").end("<title>App</title>"))
    await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve))
    port = (app.address() as AddressInfo).port
    service = await startService({ env: { SVC_MCP_ORIGINS: `http://app.localhost:${port}` } })
    session = (await signUp(service.base)).session
    chromium = await openBrowser()
  })
  afterAll(async () => {
    await closeContexts()
    await service?.stop()
    app?.close()
  })

  /** Calls the service from a page of a host; a response that the page may not read is `blocked`. */
  const fromPage = async (host: string) => {
    const context = await chromium.newContext()
    const page = await context.newPage()
    await page.goto(`http://${host}:${port}/`)
    const found = await page.evaluate(
      async ([base, token]) => {
        const blocked = () => "blocked" as const
        const read = (path: string) => fetch(base + path).then(({ status }) => status, blocked)
        const post = (path: string, headers: Record<string, string>, body: object) =>
          fetch(base + path, {
            method: "POST",
            headers: { "content-type": "application/json", ...headers },
            body: JSON.stringify(body),
          }).then(
            (response) => ({ status: response.status, challenge: response.headers.get("www-authenticate") }),
            blocked,
          )
        const list = { jsonrpc: "2.0", id: 1, method: "tools/list" }
        const redirect_uris = ["https://app.example.com/callback"]
        return {
          resource: await read("/.well-known/oauth-protected-resource/api/mcp"),
          server: await read("/.well-known/oauth-authorization-server"),
          registered: await post("/api/oauth/register", {}, { client_name: "App", redirect_uris }),
          anonymous: await post("/api/mcp", { "mcp-protocol-version": "2025-11-25" }, list),
          tools: await post(
            "/api/mcp",
            { authorization: `Bearer ${token}`, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" },
            {
              ...list,
              params: {
                _meta: {
                  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientCapabilities": {},
                },
              },
            },
          ),
          account: await fetch(`${base}/api/account`, { headers: { authorization: `Bearer ${token}` } }).then(
            ({ status }) => status,
            blocked,
          ),
        }
      },
      [service.base, session] as const,
    )
    await context.close()
    return found
  }

  it("that the operator lists reads the metadata, registers, learns where to authorize, and calls tools", async () => {
    const found = await fromPage("app.localhost")
    expect(found).toMatchObject({
      resource: 200,
      server: 200,
      registered: { status: 201 },
      anonymous: { status: 401, challenge: expect.stringContaining("resource_metadata=") },
      tools: { status: 200 },
      account: 200,
    })
  })

  it("that is not listed cannot call tools", async () => {
    const found = await fromPage("stranger.localhost")
    expect(found).toMatchObject({ resource: 200, anonymous: "blocked", tools: "blocked", account: 200 })
  })

  it("sees refusals of its origin, and no program gets permission to read", async () => {
    const body = { jsonrpc: "2.0", id: 1, method: "ping" }
    const refused = await call(service.base, "POST", "/api/mcp", {
      token: session,
      body,
      headers: { origin: `http://app.localhost:${port + 1}` },
    })
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([403, null])
    const program = await call(service.base, "POST", "/api/mcp", { token: session, body })
    expect([program.status, program.headers.get("access-control-allow-origin")]).toEqual([200, null])
  })
})

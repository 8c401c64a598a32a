import { beforeAll, describe, expect, it } from "vitest"
import { UnauthorizedError, type OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { sharedService, type TestService } from "../harness/Service.ts"
import { type Browser, signedInUser } from "./Consent.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

/** Stored copies of vendors' client documents, so that the tests make no external requests. */
const published = (id: string, name: string, redirects: ReadonlyArray<string>) =>
  service.query(
    (sql) => sql`
      insert into oauth_client (id, name, redirects, seen_at, fetched_at, fresh_until)
      values (${id}, ${name}, ${redirects}, now(), now(), now() + interval '1 hour') on conflict do nothing`,
  )

/** The official client with an in-memory store; the user follows its link. */
const official = (redirect: string, somebody: Browser, choice: Record<string, string>, document?: string) => {
  const stored: Record<string, any> = {}
  let called: URL | undefined
  const provider: OAuthClientProvider = {
    redirectUrl: redirect,
    clientMetadata: { client_name: "Official", redirect_uris: [redirect] },
    ...(document === undefined ? {} : { clientMetadataUrl: document }),
    state: () => "st",
    clientInformation: () => stored["client"],
    saveClientInformation: (one) => void (stored["client"] = one),
    tokens: () => stored["tokens"],
    saveTokens: (one) => void (stored["tokens"] = one),
    saveCodeVerifier: (one) => void (stored["verifier"] = one),
    codeVerifier: () => stored["verifier"],
    redirectToAuthorization: async (url) => void (called = await somebody.allow(url, choice)),
  }
  const transport = () =>
    new StreamableHTTPClientTransport(new URL(`${service.base}/api/mcp`), { authProvider: provider })
  return {
    stored,
    connect: async () => {
      const first = transport()
      const client = () => new Client({ name: "t", version: "1" })
      await expect(client().connect(first as any)).rejects.toBeInstanceOf(UnauthorizedError)
      expect(called!.searchParams.get("iss")).toBe(service.base)
      await first.finishAuth(called!.searchParams.get("code")!)
      const connected = client()
      await connected.connect(transport() as any)
      return connected
    },
  }
}

describe("Official MCP client", () => {
  it.each([
    ["a registration and a program of this computer", "http://localhost:53682/callback", undefined],
    ["a registration and a site", "https://app.example/callback", undefined],
    ["a registration and an editor", "cursor://anysphere.cursor-mcp/oauth/callback", undefined],
    [
      "a document and a program of any port",
      "http://localhost:58135/callback",
      "https://claude.ai/oauth/claude-code-client-metadata",
    ],
    [
      "a document and a site",
      "https://claude.ai/api/mcp/auth_callback",
      "https://claude.ai/oauth/mcp-oauth-client-metadata",
    ],
  ])("gets from a bare 401 to its tools and through a refresh with %s", async (_, redirect, document) => {
    const ada = await signedInUser(service.base)
    if (document !== undefined) {
      await published(document, "Claude", ["http://localhost/callback", "https://claude.ai/api/mcp/auth_callback"])
    }
    const { stored, connect } = official(redirect, ada.browser, {}, document)
    const client = await connect()
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain("svc_whoami")
    const who = await client.callTool({ name: "svc_whoami", arguments: {} })
    expect((who.structuredContent as any).caller).toMatchObject({ kind: "grant", handles: [ada.handle] })

    // The access token has expired.
    const before = stored["tokens"]
    await service.query(
      (sql) => sql`update oauth_token set expires_at = now() - interval '1 second' where kind = 'access'`,
    )
    expect((await client.listTools()).tools.length).toBe(tools.length)
    expect(stored["tokens"].access_token).not.toBe(before.access_token)
    expect(stored["tokens"].refresh_token).not.toBe(before.refresh_token)
    if (document !== undefined) expect(stored["client"].client_id).toBe(document)
    await client.close()
  })
})

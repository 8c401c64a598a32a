/** The MCP server: official clients, tool calls, and the protocol of each revision. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>

beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
})

const allTools = `
  svc_handle_check svc_identity_list svc_identity_get svc_identity_create svc_identity_delete svc_identity_retry
  svc_card_get svc_card_update svc_token_create svc_sign_in_create svc_email_draft svc_email_send svc_email_list
  svc_email_get svc_email_wait svc_email_update svc_attachment_get svc_draft_list svc_draft_get svc_draft_update
  svc_draft_delete svc_draft_send svc_approval_list svc_approval_get svc_approval_decide svc_webhook_create
  svc_webhook_update svc_webhook_delete svc_webhook_test svc_tunnel_get svc_identity_events svc_thread_list
  svc_thread_get svc_whoami svc_allowed_recipient_list svc_ai_disclosure_get svc_mail_status svc_event_list
  svc_event_get svc_webhook_list svc_webhook_deliveries svc_vault_list svc_vault_get svc_vault_set svc_vault_delete
  svc_connector_list svc_connector_post svc_connector_posts svc_connector_dm svc_connector_thread
  svc_connector_notifications svc_limit_list svc_usage_get`
  .trim()
  .split(/\s+/)

const post = (message: unknown, headers: Record<string, string> = {}, token: string | undefined = session) =>
  call(service.base, "POST", "/api/mcp", {
    ...(token === undefined ? {} : { token }),
    body: typeof message === "string" ? message : (message as object),
    headers: { "content-type": "application/json", ...headers },
  })
const rpc = (method: string, params: object = {}, token = session) =>
  post({ jsonrpc: "2.0", id: 1, method, params }, {}, token)
const tool = async (name: string, input: object, token = session) =>
  (await rpc("tools/call", { name, arguments: input }, token)).body.result

describe("Official clients", () => {
  it("of the revisions with initialize list and call tools", async () => {
    const client = new Client({ name: "test", version: "1" })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${service.base}/api/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${session}` } },
      }) as never,
    )
    const { tools } = await client.listTools()
    const names = tools.map(({ name }) => name)
    // `svc_event_list` replaces the tool in the compact list.
    expect([...names, "svc_identity_events"].toSorted()).toEqual(allTools.toSorted())
    const listed = await client.callTool({ name: "svc_identity_list", arguments: {} })
    expect(listed.structuredContent).toMatchObject({ identities: [{ handle: ada.handle }] })
    await client.close()
  })

  it("of 2026-07-28 discover, list and call", async () => {
    const client = new ModernClient({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } } as never)
    await client.connect(
      new ModernTransport(new URL(`${service.base}/api/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${ada.secrets.identity_key}` } },
      }) as never,
    )
    const { tools } = await client.listTools()
    expect(tools.map(({ name }: { name: string }) => name)).not.toContain("svc_identity_create")
    expect(tools).toHaveLength(45)
    const card = await client.callTool({ name: "svc_card_get", arguments: { handle: ada.handle } })
    expect(card.structuredContent).toMatchObject({ name: ada.handle })
    await client.close()
  })
})

describe("Tool call", () => {
  it("equals the REST call that it names, including its problem", async () => {
    const taken = await tool("svc_identity_create", { handle: ada.handle })
    const rest = await call(service.base, "POST", "/api/identities", { token: session, body: { handle: ada.handle } })
    expect(taken.isError).toBe(true)
    expect({ ...taken.structuredContent, instance: "" }).toEqual({ ...rest.body, instance: "" })
    expect(JSON.parse(taken.content[0].text)).toEqual(taken.structuredContent)
    const handle = newHandle("mcp")
    expect((await tool("svc_identity_create", { handle })).structuredContent).toMatchObject({
      handle,
      // The state after the first call.
      status: expect.stringMatching(/^(provisioning|ready)$/),
    })
  })

  it("puts its arguments where the endpoint takes them", async () => {
    await tool("svc_vault_set", { name: "a.b", value: "v/1 ?", description: "d", identity: ada.handle })
    expect((await tool("svc_vault_get", { name: "a.b", identity: ada.handle })).structuredContent.value).toBe("v/1 ?")
    expect((await tool("svc_vault_get", { name: "a.b" })).structuredContent.code).toBe("not_found")
    expect((await tool("svc_vault_delete", { name: "a.b", identity: ada.handle })).structuredContent).toEqual({})
    const patched = await tool("svc_card_update", { handle: ada.handle, description: "By tool.", provider: null })
    expect(patched.structuredContent.description).toBe("By tool.")
    expect((await tool("svc_email_list", { handle: ada.handle, limit: 1 })).structuredContent).toEqual({
      messages: [],
      next_cursor: null,
    })
  })

  it("with invalid arguments returns the 400 problem that names them", async () => {
    const wrong = await Promise.all([
      tool("svc_identity_get", {}),
      tool("svc_identity_get", { handle: 7 }),
      tool("svc_email_list", { handle: ada.handle, limit: "many" }),
      tool("svc_email_list", { handle: ada.handle, nonsense: 1 }),
      tool("svc_card_update", { handle: ada.handle, name: 7 }),
      tool("svc_identity_list", { extra: true }),
    ])
    expect(wrong.map(({ isError, structuredContent }) => [isError, structuredContent.code])).toEqual(
      wrong.map(() => [true, "invalid_request"]),
    )
    expect(wrong[4].structuredContent.errors[0].path).toBe("/name")
  })

  it("that the credential may not make is the 403 of REST, listed or not", async () => {
    const refused = await tool("svc_identity_list", {}, ada.secrets.identity_key)
    expect(refused.structuredContent.code).toBe("org_scope_required")
    const other = await makeIdentity(service.base, session)
    const foreign = await tool("svc_card_get", { handle: other.handle }, ada.secrets.identity_key)
    expect(foreign.structuredContent.code).toBe("foreign_identity")
  })

  it("has all four hints in the full list, and in the compact one those that differ from the protocol's defaults", async () => {
    const request = { jsonrpc: "2.0", id: 1, method: "tools/list" }
    const listed = (query: string) => call(service.base, "POST", `/api/mcp${query}`, { token: session, body: request })
    const compact: any[] = (await listed("")).body.result.tools
    expect(compact.find(({ name }) => name === "svc_vault_get").annotations).toEqual({ readOnlyHint: true })
    expect(compact.find(({ name }) => name === "svc_identity_delete").annotations).toEqual({ idempotentHint: true })
    expect(compact.find(({ name }) => name === "svc_card_update").annotations).toEqual({
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    })
    const { tools } = (await listed("?schemas=full")).body.result
    const hints = Object.fromEntries(tools.map(({ name, annotations }: any) => [name, annotations]))
    expect(hints["svc_identity_delete"]).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: true,
      openWorldHint: true,
    })
    expect(hints["svc_vault_get"]).toEqual({
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    })
    expect(hints["svc_identity_create"]).toEqual({
      readOnlyHint: false,
      destructiveHint: false,
      idempotentHint: false,
      openWorldHint: false,
    })
    const { type, properties, required, additionalProperties } = tools.find(
      ({ name }: any) => name === "svc_identity_list",
    ).inputSchema
    expect({ type, arguments: Object.keys(properties), required, additionalProperties }).toEqual({
      type: "object",
      arguments: ["limit", "cursor"],
      required: undefined,
      additionalProperties: false,
    })
    expect(JSON.stringify(tools)).not.toContain("$ref")
  })
})

describe("Protocol", () => {
  const modern = (method: string, params: object = {}, headers: Record<string, string> = {}) =>
    post(
      {
        jsonrpc: "2.0",
        id: 7,
        method,
        params: {
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
          },
        },
      },
      { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...headers },
    )

  it("discovers, and formats results by revision", async () => {
    const { body } = await modern("server/discover")
    expect(body.result).toMatchObject({
      resultType: "complete",
      supportedVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"],
      cacheScope: "private",
    })
    const called = await modern(
      "tools/call",
      { name: "svc_identity_list" },
      { "mcp-name": "=?base64?c3ZjX2lkZW50aXR5X2xpc3Q=?=" },
    )
    expect(called.body.result.resultType).toBe("complete")
  })

  it.each([
    ["another method in the header", () => modern("tools/list", {}, { "mcp-method": "ping" }), 400, -32020],
    ["no name in the header", () => modern("tools/call", { name: "svc_identity_list" }), 400, -32020],
    ["an unknown method", () => modern("logging/setLevel"), 404, -32601],
    ["a method of the old era", () => modern("ping"), 404, -32601],
    [
      "a version nobody has",
      () => post({ jsonrpc: "2.0", id: 1, method: "tools/list" }, { "mcp-protocol-version": "2031-01-01" }),
      400,
      -32022,
    ],
    ["no JSON", () => post("{"), 400, -32700],
    ["a batch", () => post([{ jsonrpc: "2.0", id: 1, method: "ping" }]), 400, -32600],
    ["an unknown tool", () => rpc("tools/call", { name: "svc_nothing" }), 200, -32602],
    ["an unknown method of the old era", () => rpc("logging/setLevel"), 200, -32601],
  ])("rejects %s", async (_, ask, status, code) => {
    const answer = await ask()
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  })

  it("keeps a key to its networks, and records the use of a key that was revoked", async () => {
    const made = async (rights: object) =>
      (await call(service.base, "POST", "/api/keys", { token: session, body: { name: "k", ...rights } })).body
    const elsewhere = await made({ networks: ["192.0.2.0/24"] })
    const list = await rpc("tools/list", {}, elsewhere.key)
    expect([list.status, list.body.code]).toEqual([403, "network_refused"])
    const { key, api_key } = await made({})
    await call(service.base, "DELETE", `/api/keys/${api_key.id}`, { token: session })
    expect((await rpc("tools/list", {}, key)).status).toBe(401)
    const { records } = await eventually(
      async () =>
        (await call(service.base, "GET", "/api/audit?action=mcp.exchange&outcome=refused", { token: session })).body,
      ({ records }) => records.length === 2,
    )
    expect(records.map(({ code, actor }: any) => [code, actor.id])).toEqual([
      ["unauthenticated", api_key.id],
      ["network_refused", elsewhere.api_key.id],
    ])
  })

  it("accepts only authenticated JSON posts from allowed origins", async () => {
    const get = await call(service.base, "GET", "/api/mcp", { token: session })
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST, OPTIONS"])
    const anonymous = await fetch(`${service.base}/api/mcp`, { method: "POST", body: "{}" })
    expect([anonymous.status, anonymous.headers.get("www-authenticate")]).toEqual([
      401,
      expect.stringMatching(/^Bearer resource_metadata="[^"]+", scope="[^"]+"$/),
    ])
    const unknown = `svc_admin_${"x".repeat(49)}`
    for (const [method, params] of [
      ["ping", {}],
      ["tools/call", { name: "svc_whoami", arguments: {} }],
    ] as const) {
      const refused = await rpc(method, params, unknown)
      expect([refused.status, refused.headers.get("www-authenticate")], method).toEqual([
        401,
        expect.stringContaining('error="invalid_token"'),
      ])
    }
    expect((await post("{}", { "content-type": "text/plain" })).status).toBe(415)
    for (const origin of ["https://evil.example", "null", "http://localhost.evil.example"]) {
      const foreign = await post({ jsonrpc: "2.0", id: 1, method: "ping" }, { origin })
      expect([foreign.status, foreign.headers.get("content-type")]).toEqual([403, "application/problem+json"])
      expect(foreign.body).toMatchObject({ code: "origin_refused", agent_hint: "stop" })
    }
    expect((await post({ jsonrpc: "2.0", method: "notifications/initialized" })).status).toBe(202)
    expect((await rpc("initialize", { protocolVersion: "2024-01-01" })).body.result.protocolVersion).toBe("2025-11-25")
    expect((await rpc("initialize", { protocolVersion: "2025-03-26" })).body.result.protocolVersion).toBe("2025-03-26")
  })
})

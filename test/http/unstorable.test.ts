/** Text that PostgreSQL does not take, where no schema of an endpoint judges it: pages, OAuth, names of tools' paths. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const form = (path: string, members: Record<string, string>) =>
  call(service.base, "POST", path, {
    body: new URLSearchParams(members).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  })

describe("a NUL", () => {
  it.each(["/@%00", "/@ad%00a", "/@ad%00a/agent-card.json"])(
    "in the name of a profile, %s, is nobody's",
    async (path) => {
      expect((await call(service.base, "GET", path)).status).toBe(404)
    },
  )

  it("in the name of an app is no app's", async () => {
    const asked = new URLSearchParams({ client_id: "a\0b", response_type: "code", redirect_uri: "http://localhost/" })
    expect((await call(service.base, "GET", `/auth/authorize?${asked}`)).status).toBe(400)
  })

  it.each([
    ["/api/oauth/token", { grant_type: "refresh_token", refresh_token: "svc_ort_x", client_id: "a\0b" }],
    ["/api/oauth/token", { grant_type: "authorization_code", client_id: "\0" }],
    ["/api/oauth/revoke", { token: `svc_ort_${"a".repeat(49)}`, client_id: "a\0b" }],
  ])("in a form of %s is refused", async (path, members) => {
    expect(await form(path, members)).toMatchObject({ status: 400, body: { error: "invalid_request" } })
  })
})

it("half a surrogate pair in the argument of a tool is refused, wherever the argument goes", async () => {
  const tool = async (name: string, input: object) =>
    (
      await call(service.base, "POST", "/api/mcp", {
        token: session,
        body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } },
      })
    ).body.result
  for (const [name, input] of [
    ["svc_identity_get", { handle: "ada\ud800" }],
    ["svc_vault_get", { name: "\udc00" }],
    ["svc_vault_set", { name: "a", value: "\ud800" }],
  ] as const) {
    const { isError, structuredContent } = await tool(name, input)
    expect([name, isError, structuredContent.code]).toEqual([name, true, "invalid_request"])
  }
})

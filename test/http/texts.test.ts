/**
 * Text that PostgreSQL rejects where no schema validates it (pages, OAuth, path arguments of tools), and bodies that are
 * not UTF-8, which would otherwise be stored with replacement characters.
 */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

const form = (path: string, members: Record<string, string>) =>
  call(service.base, "POST", path, {
    body: new URLSearchParams(members).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  })

describe("NUL character", () => {
  it.each(["/@%00", "/@ad%00a", "/@ad%00a/agent-card.json"])(
    "in the name of a profile, %s, is not found",
    async (path) => {
      expect((await call(service.base, "GET", path)).status).toBe(404)
    },
  )

  it("in the name of an app is rejected", async () => {
    const query = new URLSearchParams({ client_id: "a\0b", response_type: "code", redirect_uri: "http://localhost/" })
    expect((await call(service.base, "GET", `/auth/authorize?${query}`)).status).toBe(400)
  })

  it.each([
    ["/api/oauth/token", { grant_type: "refresh_token", refresh_token: "svc_ort_x", client_id: "a\0b" }],
    ["/api/oauth/token", { grant_type: "authorization_code", client_id: "\0" }],
    ["/api/oauth/revoke", { token: `svc_ort_${"a".repeat(49)}`, client_id: "a\0b" }],
  ])("in a form of %s is rejected", async (path, members) => {
    expect(await form(path, members)).toMatchObject({ status: 400, body: { error: "invalid_request" } })
  })
})

it("a lone surrogate in a tool argument is rejected wherever the argument goes", async () => {
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

const send = async (method: string, path: string, body: Buffer, type = "application/json") => {
  const answer = await fetch(`${service.base}${path}`, {
    method,
    body: body as Uint8Array<ArrayBuffer>,
    headers: { authorization: `Bearer ${session}`, "content-type": type },
  })
  return { status: answer.status, body: (await answer.json()) as any }
}
const latin1 = (value: object) => Buffer.from(JSON.stringify(value), "latin1")

describe("Bodies that are not UTF-8", () => {
  it("are rejected everywhere and change nothing", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const refused = { status: 400, body: { code: "invalid_request", detail: "The request body is not UTF-8." } }
    const secret = "/api/vault/secrets/token"
    expect(await send("PUT", secret, latin1({ value: "pässword" }))).toMatchObject(refused)
    expect(await send("PUT", secret, latin1({ value: "ä".repeat(20_000) }))).toMatchObject(refused)
    expect((await call(service.base, "GET", `${secret}/value`, { token: session })).status).toBe(404)
    expect(await send("PATCH", `/api/identities/${handle}/card`, latin1({ description: "é" }))).toMatchObject(refused)
    const tool = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "svc_vault_set", arguments: { name: "a", value: "ü" } },
    }
    expect(await send("POST", "/api/mcp", latin1(tool))).toMatchObject(refused)
    expect((await call(service.base, "GET", "/api/vault/secrets", { token: session })).body.secrets).toEqual([])
  })

  it("do not include the replacement character itself", async () => {
    const value = "\ufeff\ufffd ä 👋"
    expect((await send("PUT", "/api/vault/secrets/odd", Buffer.from(JSON.stringify({ value })))).status).toBe(201)
    const read = await call(service.base, "GET", "/api/vault/secrets/odd/value", { token: session })
    expect(read.body.value).toBe(value)
  })
})

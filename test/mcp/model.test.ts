/** Names, descriptions and errors of the tools, as a model reads them. */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let ada: Awaited<ReturnType<typeof makeIdentity>>
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  ada = await makeIdentity(service.base, session)
})

const rpc = (method: string, params: object = {}, token = session) =>
  call(service.base, "POST", "/api/mcp?schemas=full", { token, body: { jsonrpc: "2.0", id: 1, method, params } })
const tool = async (name: string, input: object, token = session) =>
  (await rpc("tools/call", { name, arguments: input }, token)).body.result

describe("Tools", () => {
  it("describe every argument and the next step", async () => {
    const { tools } = (await rpc("tools/list")).body.result
    for (const { name, description, inputSchema } of tools) {
      for (const [argument, schema] of Object.entries<any>(inputSchema.properties ?? {})) {
        expect(schema.description, `${name} ${argument}`).toBeTypeOf("string")
      }
      expect(description.length, name).toBeGreaterThan(20)
    }
    const by = Object.fromEntries(tools.map((one: any) => [one.name, one]))
    expect(by["svc_identity_create"].description).toContain("until `status` is `ready`")
    expect(Object.keys(by["svc_email_list"].inputSchema.properties)).toEqual(
      expect.arrayContaining(["handle", "limit", "offset", "query", "direction", "tag", "thread_id", "wait", "after"]),
    )
    expect(Object.keys(by["svc_event_list"].inputSchema.properties)).toEqual(
      expect.arrayContaining(["type", "handle", "limit", "cursor"]),
    )
    expect(by["svc_email_list"].inputSchema.properties.limit).toMatchObject({ type: "integer", maximum: 200 })
    expect(JSON.stringify(tools)).not.toContain("prefixItems")
  })

  it("name the Identity of an Identity Key in the instructions and in refusals", async () => {
    const key = ada.secrets.identity_key
    const opened = (await rpc("initialize", { protocolVersion: "2025-11-25" }, key)).body.result
    expect(opened.instructions).toContain(`You act as @${ada.handle}`)
    expect((await rpc("initialize", { protocolVersion: "2025-11-25" })).body.result.instructions).not.toContain("as @")
    const refused = await tool("svc_identity_list", {}, key)
    expect(refused.structuredContent.detail).toContain(`You act as @${ada.handle}`)
    const foreign = await tool("svc_card_get", { handle: "somebody" }, key)
    expect(foreign.structuredContent.detail).toContain(`You act as @${ada.handle}`)
  })

  it("accept a handle as people write it", async () => {
    const handle = `@${ada.handle}`
    expect((await tool("svc_identity_get", { handle })).structuredContent.handle).toBe(ada.handle)
    expect((await tool("svc_vault_list", { identity: handle })).structuredContent).toMatchObject({ secrets: [] })
    expect((await tool("svc_event_list", { handle, limit: 1 })).isError).toBeUndefined()
    // A handle to register contains no @.
    expect((await tool("svc_handle_check", { handle })).structuredContent).toMatchObject({
      available: false,
      code: "handle_invalid",
      detail: expect.stringContaining("Omit the @"),
    })
  })

  it("reject unknown arguments, and names that are paths", async () => {
    const undeclared = await tool("svc_vault_set", { name: "x", value: "v", colour: "red" })
    expect(undeclared.structuredContent).toMatchObject({
      code: "invalid_request",
      detail:
        "Unknown argument colour. The tool takes name, identity, value, description, idempotency_key, allow_duplicate.",
    })
    for (const handle of [".", "..", ""]) {
      expect((await tool("svc_identity_get", { handle })).structuredContent.code, handle).toBe("invalid_request")
    }
    const unnamed = await tool("svc_vault_set", { name: "Not A Name", value: "v" })
    expect(unnamed.structuredContent.detail).toContain("lowercase letters, digits, dots, dashes and underscores")
  })
})

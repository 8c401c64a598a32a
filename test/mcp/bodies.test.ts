import { request as httpRequest } from "node:http"
import { beforeAll, describe, expect, it } from "vitest"
import { call, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})

const headers = { "content-type": "application/json" }
const post = (body: object | string) => call(service.base, "POST", "/api/mcp", { token: session, body, headers })
const tool = async (name: string, input: object) =>
  (await post({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } })).body.result

describe("Request body", () => {
  const chunked = (bytes: number) =>
    new Promise<{ status: number; body: any }>((resolve, reject) => {
      const { hostname, port } = new URL(service.base)
      const headers = { authorization: `Bearer ${session}`, "content-type": "application/json" }
      const request = httpRequest({ hostname, port, path: "/api/mcp", method: "POST", headers }, (answer) => {
        const parts: Array<Buffer> = []
        answer.on("data", (part: Buffer) => parts.push(part))
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, body: JSON.parse(Buffer.concat(parts).toString()) }),
        )
      })
      request.on("error", reject)
      const input = { name: "x", value: "A".repeat(bytes) }
      const text = JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "svc_vault_set", arguments: input },
      })
      // A chunked body has no Content-Length.
      for (let at = 0; at < text.length; at += 65_536) request.write(text.slice(at, at + 65_536))
      request.end()
    })

  it("over 10 MiB is rejected with and without a declared length", async () => {
    const refused = await chunked(10 * 1024 * 1024)
    expect([refused.status, refused.body.code]).toEqual([413, "payload_too_large"])
    const response = await post("A".repeat(10 * 1024 * 1024 + 1))
    expect(response).toMatchObject({
      status: 413,
      body: { code: "payload_too_large", detail: "The request body exceeds the limit of 10 MiB for this operation." },
    })
  })

  it("of a tool call that exceeds the limit of its endpoint is an error that names the limit", async () => {
    const { structuredContent, isError } = await tool("svc_vault_set", { name: "x", value: "A".repeat(1024 * 1024) })
    expect([isError, structuredContent]).toMatchObject([
      true,
      { code: "payload_too_large", detail: "The request body exceeds the limit of 1 MiB for this operation." },
    ])
    expect((await chunked(1024 * 1024)).body.result.structuredContent.code).toBe("payload_too_large")
  })
})

describe("Message", () => {
  it("echoes at most a short part of unknown names", async () => {
    const long = "x".repeat(100_000)
    const call = (params: object) => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params })
    for (const [message, status] of [
      [{ jsonrpc: "2.0", id: 1, method: long }, 200],
      [{ jsonrpc: "2.0", id: long, method: "ping" }, 400],
      [call({ name: long }), 200],
      [call({ name: "svc_whoami", arguments: { [long]: 1 } }), 200],
    ] as const) {
      const answer = await post(message)
      expect(answer.status).toBe(status)
      expect(JSON.stringify(answer.body).length).toBeLessThan(2000)
    }
    expect((await post({ jsonrpc: "2.0", id: "y".repeat(1000), method: "ping" })).body.id).toHaveLength(1000)
  })

  it("rejects arguments that do not fit into a URL", async () => {
    for (const [name, input] of [
      ["svc_identity_get", { handle: "é".repeat(9000) }],
      ["svc_email_list", { handle: "nobody", query: "é".repeat(9000) }],
    ] as const) {
      expect((await tool(name, input)).structuredContent).toMatchObject({
        code: "invalid_request",
        errors: [{ message: "expected a length of at most 8192" }],
      })
    }
  })
})

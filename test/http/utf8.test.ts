/** Bodies in other encodings than UTF-8, which would be kept with other letters than were sent. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const send = async (method: string, path: string, body: Buffer, type = "application/json") => {
  const answer = await fetch(`${service.base}${path}`, {
    method,
    body: body as Uint8Array<ArrayBuffer>,
    headers: { authorization: `Bearer ${session}`, "content-type": type },
  })
  return { status: answer.status, body: (await answer.json()) as any }
}
const latin1 = (value: object) => Buffer.from(JSON.stringify(value), "latin1")

it("are refused, whatever they are for, and change nothing", async () => {
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

it("are no matter of the letter that stands for what cannot be read", async () => {
  const value = "\ufeff\ufffd ä 👋"
  expect((await send("PUT", "/api/vault/secrets/odd", Buffer.from(JSON.stringify({ value })))).status).toBe(201)
  const read = await call(service.base, "GET", "/api/vault/secrets/odd/value", { token: session })
  expect(read.body.value).toBe(value)
})

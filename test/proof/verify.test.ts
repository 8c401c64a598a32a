/** `POST /api/verify`: tokens, cards and requests of this and of another deployment, and why one does not stand. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { createClient } from "@agent-identity/sdk"
import { signatureSeconds } from "@svc/domain/proof/RequestSignature"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { runHere } from "../harness/Commands.ts"
import { startService, type OwnService } from "../harness/Service.ts"
import { runSvc } from "../harness/Svc.ts"

let here: OwnService
let there: OwnService
/** An account at this service, which verifies, and an agent at each service. */
let session: string
const agents: Array<{ service: OwnService; session: string; handle: string; key: string }> = []
beforeAll(async () => {
  ;[here, there] = [
    await startService(),
    await startService({ env: { SVC_MASTER_KEY: Buffer.alloc(32, 9).toString("base64") } }),
  ]
  session = (await signUp(here.base)).session
  for (const service of [here, there]) {
    const account = (await signUp(service.base)).session
    const { handle, secrets } = await makeIdentity(service.base, account)
    agents.push({ service, session: account, handle, key: secrets.identity_key })
  }
})
afterAll(async () => {
  await here.stop()
  await there.stop()
})

const verify = async (proof: unknown, token = session) => {
  const { status, body } = await call(here.base, "POST", "/api/verify", { token, body: proof as object })
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}
const tokenOf = async ({ service, session, handle }: (typeof agents)[number], body: object = {}) =>
  (
    await call(service.base, "POST", `/api/identities/${handle}/tokens`, {
      token: session,
      body: { audience: "api.example", ...body },
    })
  ).body.token as string
const cardOf = async ({ service, handle }: (typeof agents)[number]) => {
  const card_url = `${service.base}/@${handle}/agent-card.json`
  return { card: (await (await fetch(card_url)).json()) as Record<string, unknown>, card_url }
}
const url = "https://shop.example/search?q=1"
const requestOf = async ({ service, key, handle }: (typeof agents)[number]) => {
  const { headers } = await createClient({ key, baseUrl: service.base })
    .identity(handle)
    .proof.createSignature({ method: "GET", url })
  return { method: "GET", url, headers }
}
const flipped = (text: string, at: number) => text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1)

describe.each([
  [0, "this service"],
  [1, "another service"],
])("an agent of %s (%s)", (at) => {
  it("is known by its token, which is refused when it is altered, expired or for another audience", async () => {
    const agent = agents[at]!
    const token = await tokenOf(agent)
    const handle = at === 0 ? agent.handle : null
    expect(await verify({ token, audience: "api.example" })).toMatchObject({
      valid: true,
      agent: { issuer: agent.service.base, subject: expect.stringMatching(/^agent:/), handle },
      kid: expect.any(String),
      reason: null,
    })
    const reasonOf = async (proof: object) => (await verify(proof)).reason
    expect(await reasonOf({ token, audience: "other.example" })).toBe("other_audience")
    expect(await reasonOf({ token: flipped(token, token.length - 20) })).toBe("altered")
    const [head, , signature] = token.split(".")
    const claims = JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString())
    const other = Buffer.from(JSON.stringify({ ...claims, iss: agents[1 - at]!.service.base })).toString("base64url")
    expect(await reasonOf({ token: `${head}.${other}.${signature}` })).toBe("unknown_key")
    expect(await reasonOf({ token: "a.b.c" })).toBe("malformed")
  })

  it("is known by its card, unless the card is altered, unsigned or read from another agent's address", async () => {
    const agent = agents[at]!
    const { card, card_url } = await cardOf(agent)
    const found = await verify({ card, card_url })
    expect(found).toMatchObject({
      valid: true,
      agent: { issuer: `${agent.service.base}/@${agent.handle}/jwks.json`, handle: at === 0 ? agent.handle : null },
    })
    const { signatures, ...unsigned } = card
    expect(signatures).toBeDefined()
    expect((await verify({ card: unsigned })).reason).toBe("unsigned")
    expect((await verify({ card: { ...card, description: "I am another agent." } })).reason).toBe("altered")
    const elsewhere = { card, card_url: `${agent.service.base}/@mallory/agent-card.json` }
    expect((await verify(elsewhere)).reason).toBe("other_address")
  })
})

describe("an Identity", () => {
  it("is known by a request that it signed, with the key that signed before a rotation, and not after its end", async () => {
    const [agent] = agents
    const request = await requestOf(agent!)
    const origin = new URL(/"(.+)"/.exec(request.headers["signature-agent"]!)![1]!).origin
    const found = await verify({ request })
    const created = Number(/;created=(\d+)/.exec(request.headers["signature-input"]!)![1])
    expect(found).toMatchObject({
      valid: true,
      agent: { issuer: origin, subject: null, handle: agent!.handle },
      expires_at: new Date((created + signatureSeconds) * 1000).toISOString(),
    })
    const capitals = Object.entries(request.headers).map(([name, value]) => [name.toUpperCase(), value])
    expect(await verify({ request: { ...request, headers: Object.fromEntries(capitals) } })).toEqual(found)
    const path = `/api/identities/${agent!.handle}`
    await call(here.base, "POST", `${path}/signing-key/rotate`, { token: agent!.session })
    expect((await verify({ request })).kid).toBe(found.kid)
    const next = await requestOf(agent!)
    expect(await verify({ request: next })).toMatchObject({ valid: true })
    expect((await verify({ request: { ...next, method: "POST" } })).reason).toBe("altered")
    expect((await verify({ request: { ...next, headers: {} } })).reason).toBe("unsigned")
    const moved = { ...next.headers, "signature-agent": 'sig1="http://127.0.0.1:1"' }
    expect((await verify({ request: { ...next, headers: moved } })).reason).toBe("unreadable_keys")
    const token = await tokenOf(agent!)
    await call(here.base, "DELETE", path, { token: agent!.session })
    expect(await verify({ token })).toMatchObject({ valid: false, reason: "identity_ended", agent: null })
  })
})

it("`svc verify` prints who signed, and exits with 1 for a proof that does not stand", async () => {
  const home = mkdtempSync(path.join(tmpdir(), "svc-verify-"))
  try {
    const around = { home, env: { SVC_KEY: session, SVC_API_URL: here.base } }
    const agent = agents[1]!
    const { card_url } = await cardOf(agent)
    const jwks = `${agent.service.base}/@${agent.handle}/jwks.json`
    const good = await runHere(around, "verify", card_url)
    expect([good.code, good.out]).toEqual([0, expect.stringContaining(`Verified: ${jwks}, key `)])
    const file = path.join(home, "token")
    writeFileSync(file, await tokenOf(agent))
    const wrong = await runHere(around, "verify", file, "--audience", "other.example")
    expect([wrong.code, wrong.out.trim()]).toEqual([
      1,
      "Not verified (other_audience): The token is for another audience.",
    ])
    const input = await runSvc({ ...around, input: `${await tokenOf(agent)}\n` }, "verify", "-")
    expect([input.code, input.out]).toEqual([0, expect.stringContaining("Verified: ")])
    expect((await runHere(around, "verify", "nothing")).code).toBe(2)
  } finally {
    rmSync(home, { recursive: true })
  }
})

it("needs any credential, and one proof", async () => {
  const none = await call(here.base, "POST", "/api/verify", { body: { token: "x" } })
  expect(none.status).toBe(401)
  for (const wrong of [{}, { token: "x", card: {} }, { audience: "x" }]) {
    const { status, body } = await call(here.base, "POST", "/api/verify", { token: session, body: wrong })
    expect([status, body.code]).toEqual([400, "invalid_request"])
  }
  const made = await makeIdentity(here.base, session)
  expect((await verify({ token: "x" }, made.secrets.identity_key)).reason).toBe("malformed")
})

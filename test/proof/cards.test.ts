/** Signed A2A cards (A2A 1.0 section 8.4), verified by `jose` with `canonicalize`, and by the A2A SDK. */
import { type AgentCard, verifyAgentCardSignature } from "@a2a-js/sdk"
import canonicalize from "canonicalize"
import { type CryptoKey, decodeProtectedHeader, flattenedVerify, importJWK, type JWK } from "jose"
import { beforeAll, describe, expect, it, vi } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { hostOf } from "../harness/Public.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let handle: string
let key: string
beforeAll(async () => {
  // The SDK prints each signature that does not verify.
  vi.spyOn(console, "debug").mockImplementation(() => undefined)
  service = await sharedService()
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  key = made.secrets.identity_key
})

interface Signed {
  readonly signatures?: ReadonlyArray<{ readonly protected: string; readonly signature: string }>
  readonly [member: string]: unknown
}

const read = async (name = handle): Promise<Signed> =>
  (await call<Signed>(service.base, "GET", `/@${name}/agent-card.json`)).body
const patch = (body: unknown) => call(service.base, "PATCH", `/api/identities/${handle}/card`, { token: key, body })
const kidOf = (card: Signed) => decodeProtectedHeader(card.signatures![0]!).kid

const keyOf = async (kid: string, jku = "") => {
  expect(jku).toBe(`${service.base}/@${handle}/jwks.json`)
  const { body } = await call(service.base, "GET", new URL(jku).pathname)
  const jwk = (body.keys as ReadonlyArray<JWK>).find((one) => one.kid === kid)!
  return (await importJWK(jwk, "EdDSA")) as CryptoKey
}

/** Verifies the first signature by the specification: the canonical form of the card without its signatures. */
const bySpecification = async ({ signatures, ...card }: Signed) => {
  const [signature] = signatures!
  const { alg, typ, kid, jku } = decodeProtectedHeader(signature!)
  expect([alg, typ]).toEqual(["EdDSA", "JOSE"])
  const payload = Buffer.from(canonicalize(card)!).toString("base64url")
  await flattenedVerify({ ...signature!, payload }, await keyOf(kid!, jku))
}
/** The SDK decodes the JSON itself before it verifies. */
const bySdk = (card: Signed) => verifyAgentCardSignature((kid, jku) => keyOf(kid, jku))(card as unknown as AgentCard)

const verify = async (card: Signed) => {
  await bySpecification(card)
  await bySdk(card)
}

describe("signed card", () => {
  it("is valid for a new Identity, whose description and skills are empty", async () => {
    const card = await read()
    expect(card).toMatchObject({ description: "", skills: [] })
    await verify(card)
    expect((await read()).signatures).toEqual(card.signatures)
  })

  it("is signed when it is written, and valid after each edit", async () => {
    for (const change of [
      { description: 'Computes things: ünïcode, \u2028 and "quotes"' },
      { skills: [{ id: "s", name: "Sum", description: "Adds", tags: [], examples: [] }] },
      { provider: { organization: "Analytical", url: "https://example.org" }, capabilities: { streaming: true } },
      { skills: [{ id: "s", name: "Sum", description: "Adds", tags: ["math"], input_modes: ["text/plain"] }] },
    ]) {
      const { body } = await patch(change)
      const [stored] = await service.query<{ signature: unknown }>(
        (sql) => sql`select c.signature from card c join identity i on i.id = c.identity_id where i.handle = ${handle}`,
      )
      expect(stored!.signature).not.toBeNull()
      const card = await read()
      expect(body.card).toEqual(card)
      // The empty list of examples is served, but not part of the canonical form.
      if (JSON.stringify(card).includes('"examples":[]')) await bySdk(card)
      else await verify(card)
    }
  })

  it("is refused if one character changes, or if the signature is of another card", async () => {
    const card = await read()
    await expect(bySpecification({ ...card, name: `${String(card["name"])}x` })).rejects.toThrow()
    await expect(bySdk({ ...card, version: "1.0.1" })).rejects.toThrow()
    const { handle: other } = await makeIdentity(service.base, session)
    const { signatures } = await read(other)
    await expect(bySdk({ ...card, signatures: signatures! })).rejects.toThrow()
  })

  it("is signed again when the Tunnel requires a password, and valid", async () => {
    const before = await read()
    const tunnel = { basic_auth: { username: "grace", password: "correct-horse-battery" } }
    const changed = await call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, {
      token: session,
      body: tunnel,
    })
    expect(changed.status, JSON.stringify(changed.body)).toBe(200)
    const card = await read()
    expect(card.signatures).not.toEqual(before.signatures)
    await bySdk(card)
    await call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, {
      token: session,
      body: { basic_auth: null },
    })
    await verify(await read())
  })

  it("stays valid after a rotation: an old copy by the former key, the new one by the next key", async () => {
    const old = await call<Signed>(service.base, "GET", `/@${handle}/agent-card.json`)
    await call(service.base, "POST", `/api/identities/${handle}/signing-key/rotate`, { token: session })
    const card = await call<Signed>(service.base, "GET", `/@${handle}/agent-card.json`, {
      headers: { "if-none-match": old.headers.get("etag")! },
    })
    expect(card.status).toBe(200)
    expect(kidOf(card.body)).not.toBe(kidOf(old.body))
    await verify(card.body)
    await verify(old.body)
    await patch({ version: "2.0.0" })
    const edited = await read()
    expect(kidOf(edited)).toBe(kidOf(card.body))
    await verify(edited)
  })

  it("is signed by the next key right after a rotation, also by a process that has just used the former key", async () => {
    await patch({ version: "3.0.0" })
    const former = kidOf(await read())
    await call(service.base, "POST", `/api/identities/${handle}/signing-key/rotate`, { token: session })
    const { body } = await patch({ version: "4.0.0" })
    expect(kidOf(body.card)).not.toBe(former)
    expect(await read()).toEqual(body.card)
    await verify(body.card)
  })

  it("has no signature of another document in the response to an edit that changes nothing", async () => {
    const { body: before } = await patch({ version: "5.0.0" })
    await verify(before.card)
    const tunnel = (basic_auth: unknown) =>
      call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, { token: session, body: { basic_auth } })
    await tunnel({ username: "grace", password: "correct-horse-battery" })
    const { body: after } = await patch({ version: "5.0.0" })
    expect(after.card).toHaveProperty("securitySchemes")
    if (after.card.signatures !== undefined) await bySdk(after.card)
    await tunnel(null)
  })

  it("is named on the profile page in three languages with the key and the DID, but not during a stop", async () => {
    const { handle: name } = await makeIdentity(service.base, session)
    const page = async (language: string) =>
      (await fetch(`${service.base}/@${name}`, { headers: { "accept-language": language } })).text()
    const keys = (text: string) => `<a href="/@${name}/jwks.json">${text}</a>`
    const english = await page("en")
    expect(english).toContain(`The agent card is signed with ${keys("the agent’s key")}.`)
    expect(english).toContain(`<a href="/@${name}/did.json"><code>did:`)
    // Everything that a stranger can verify, and how.
    const code = (text: string) => `<code>${text.replace(/[@./:-]+(?=\w)/g, "$&<wbr>")}</code>`
    for (const text of [
      `in <code>Agent-Identity</code>; ${code("mail.localhost")} signs this field`,
      `Its signed web requests name ${code(`http://${hostOf(name)}:${service.edgePort}`)}`,
      `are issued by ${code(service.base)}`,
      `<a href="${service.base}/docs/proof">`,
    ]) {
      expect(english).toContain(text)
    }
    expect(await page("de")).toContain(`Die Agentenkarte ist mit ${keys("dem Schlüssel des Agenten")} signiert.`)
    expect(await page("fr")).toContain(`La carte d’agent est signée avec ${keys("la clé de l’agent")}.`)
    const path = `/api/identities/${name}`
    await call(service.base, "PATCH", `${path}/mail`, { token: session, body: { outgoing: "stopped" } })
    await call(service.base, "PATCH", `${path}/card`, { token: session, body: { description: "Counts." } })
    expect(await page("en")).not.toContain("is signed with")
  })

  it("is not signed while the Identity is stopped, and signed again afterwards", async () => {
    const stop = (outgoing: string) =>
      call(service.base, "PATCH", `/api/identities/${handle}/mail`, { token: session, body: { outgoing } })
    expect((await stop("stopped")).status).toBe(200)
    await patch({ description: "Written during a stop" })
    expect(await read()).not.toHaveProperty("signatures")
    expect((await stop("active")).status).toBe(200)
    await verify(await read())
  })
})

/** The directory of keys at the Tunnel's hostname, with which sites verify signed requests. The edge serves it. */
import { createPublicKey, verify as verifyBytes } from "node:crypto"
import type { JWK } from "jose"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic, hostOf, openConnection } from "../harness/Public.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { directoryOf, directoryPath, verifiedOrigin } from "./Sites.ts"

let service: TestService
let session: string
let handle: string
let key: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  key = made.secrets.identity_key
})

const url = "https://shop.example/search?q=agents"
const sign = (token: string, name: string) =>
  call(service.base, "POST", `/api/identities/${name}/signatures`, { token, body: { method: "GET", url } })
const originOf = (name: string) => `http://${hostOf(name)}:${service.edgePort}`

/** Verifies a signature of the directory from its text, without a library. */
const isBound = (headers: Readonly<Record<string, unknown>>, jwk: JWK, authority: string, at = 0) => {
  const member = (name: string) =>
    String(headers[name])
      .split(", ")
      [at]!.replace(`sig${at + 1}=`, "")
  const base = `"@authority";req: ${authority}\n"@signature-params": ${member("signature-input")}`
  const signature = Buffer.from(/^:(.+):$/.exec(member("signature"))![1]!, "base64")
  return verifyBytes(null, Buffer.from(base), createPublicKey({ key: jwk as never, format: "jwk" }), signature)
}

describe("the directory at the Tunnel's hostname", () => {
  it("is signed for its own origin by each key that it lists", async () => {
    const { status, headers, keys } = await directoryOf(service.edgePort, handle)
    expect(status).toBe(200)
    expect(headers["content-type"]).toBe("application/http-message-signatures-directory+json")
    expect(headers["access-control-allow-origin"]).toBe("*")
    expect(keys).toHaveLength(1)
    expect(keys[0]).toMatchObject({ kty: "OKP", crv: "Ed25519" })
    expect(keys[0]).not.toHaveProperty("d")
    expect(String(headers["signature-input"])).toMatch(
      new RegExp(
        `^sig1=\\("@authority";req\\);created=\\d+;expires=\\d+;keyid="${keys[0]!.kid}";.*tag="http-message-signatures-directory"$`,
      ),
    )
    expect(isBound(headers, keys[0]!, `${hostOf(handle)}:${service.edgePort}`)).toBe(true)
    expect(isBound(headers, keys[0]!, `mallory.tunnel.localhost:${service.edgePort}`)).toBe(false)
  })

  it("lists and binds a key that was just rotated, so that what it signed can still be verified", async () => {
    const { handle: name, secrets } = await makeIdentity(service.base, session)
    const { headers: before } = (await sign(secrets.identity_key, name)).body
    const [former] = (await directoryOf(service.edgePort, name)).keys
    await call(service.base, "POST", `/api/identities/${name}/signing-key/rotate`, { token: session })
    const { headers, keys } = await directoryOf(service.edgePort, name)
    expect(keys).toHaveLength(2)
    expect(keys[1]).toEqual(former)
    keys.forEach((jwk, at) => {
      expect(isBound(headers, jwk, `${hostOf(name)}:${service.edgePort}`, at)).toBe(true)
      expect(isBound(headers, jwk, `mallory.tunnel.localhost:${service.edgePort}`, at)).toBe(false)
    })
    expect(await verifiedOrigin({ method: "GET", url, headers: before }, keys[1]!)).toBe(originOf(name))
    // Five minutes later nothing that the key signed is valid, and the directory has only the current key.
    await service.query(
      (sql) => sql`
        update signing_key k set retired_at = k.retired_at - interval '301 seconds'
        from identity i where i.id = k.identity_id and i.handle = ${name} and k.retired_at is not null`,
    )
    expect((await directoryOf(service.edgePort, name)).keys).toEqual([keys[0]])
    // Nothing is signed for an Identity that is stopped, the directory included.
    await call(service.base, "PATCH", `/api/identities/${name}/mail`, { token: session, body: { outgoing: "stopped" } })
    const stopped = await directoryOf(service.edgePort, name)
    expect([stopped.keys, stopped.headers["signature"], stopped.headers["signature-input"]]).toEqual([
      [keys[0]],
      undefined,
      undefined,
    ])
  })

  it("comes with a DID document of the hostname, which names the profile's DID", async () => {
    const { status, headers, body } = await fetchPublic(service.edgePort, handle, "/.well-known/did.json")
    expect([status, headers["content-type"]]).toEqual([200, "application/did+json"])
    const document = JSON.parse(body)
    expect(document.id).toBe(`did:web:${encodeURIComponent(`${hostOf(handle)}:${service.edgePort}`)}`)
    const profile = (await call(service.base, "GET", `/@${handle}/did.json`)).body
    expect(document.alsoKnownAs).toContain(profile.id)
    expect(document.verificationMethod[0].publicKeyJwk).toEqual(profile.verificationMethod[0].publicKeyJwk)
  })

  it("cannot be forged by the connected agent, not even on an open connection or behind a password", async () => {
    const forged = JSON.stringify({ keys: [{ kty: "OKP", crv: "Ed25519", x: "forged" }] })
    const tunnel = connectTunnel({
      key,
      edge: `http://connect.tunnel.localhost:${service.edgePort}`,
      handler: (request, response) => response.end(request.url === "/hello" ? "hello" : forged),
    })
    await tunnel.ready
    try {
      const { keys } = await directoryOf(service.edgePort, handle)
      expect(keys[0]!.x).not.toBe("forged")
      const head = (target: string) => `GET ${target} HTTP/1.1\r\nHost: ${hostOf(handle)}\r\n\r\n`
      const connection = await openConnection(service.edgePort)
      expect(await connection.say(head("/hello"), /hello$/)).toContain("200")
      const answer = await connection.say(head(`${directoryPath}?a=1`), /]}$/)
      expect(answer).toContain("application/http-message-signatures-directory+json")
      expect(answer).not.toContain("forged")
      await connection.closed
      const both = await openConnection(service.edgePort)
      const pipelined = await both.say(head("/hello") + head(directoryPath), /]}$/)
      expect(pipelined).toMatch(/hello[^]*directory\+json/)
      expect(pipelined).not.toContain("forged")
      await both.closed
      await call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, {
        token: session,
        body: { basic_auth: { username: "ada", password: "countess" } },
      })
      const helloIs = (wanted: number) =>
        eventually(
          () => fetchPublic(service.edgePort, handle, "/hello"),
          ({ status }) => status === wanted,
        )
      // The edge learns of a setting within a second.
      await helloIs(401)
      expect((await directoryOf(service.edgePort, handle)).keys).toEqual(keys)
      // Everything else is the agent's.
      await call(service.base, "PATCH", `/api/identities/${handle}/tunnel`, {
        token: session,
        body: { basic_auth: null },
      })
      await helloIs(200)
      expect((await fetchPublic(service.edgePort, handle, "/.well-known/other")).body).toBe(forged)
      expect((await fetchPublic(service.edgePort, handle, directoryPath, { method: "POST" })).body).toBe(forged)
    } finally {
      await tunnel.close()
    }
  })
})

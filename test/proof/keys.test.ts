/** The keys of an Identity: its published documents, rotation, and keys that the agent registers. */
import { ECDH } from "node:crypto"
import { exportJWK, generateKeyPair, importJWK, SignJWT, calculateJwkThumbprint, type JWK } from "jose"
import { base58btc } from "multiformats/bases/base58"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

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

const ask = (method: string, path: string, token: string, body?: unknown) =>
  call(service.base, method, `/api/identities/${handle}${path}`, { token, ...(body === undefined ? {} : { body }) })
const published = (document: string, name = handle) => call(service.base, "GET", `/@${name}/${document}`)
const didOf = (name: string) => `did:web:${encodeURIComponent(new URL(service.base).host)}:%40${name}`

/** Creates a key as an agent would, with a proof of possession. */
const ownKey = async (
  alg: "EdDSA" | "ES256" | "RS256",
  claims: { readonly audience?: string; readonly subject?: string; readonly issuedAt?: number } = {},
) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(publicKey)
  const proof = await new SignJWT({})
    .setProtectedHeader({ alg })
    .setAudience(claims.audience ?? service.base)
    .setSubject(claims.subject ?? didOf(handle))
    .setIssuedAt(claims.issuedAt)
    .sign(privateKey)
  return { jwk, proof, kid: await calculateJwkThumbprint(jwk), privateKey }
}

/** The Multicodec prefix and the key; a P-256 point is compressed by the library of Node. */
const multikeyOf = ({ crv, x, y }: JWK): ReadonlyArray<number> => {
  const [across, up] = [x, y].map((text) => Buffer.from(text ?? "", "base64url"))
  if (crv === "Ed25519") return [0xed, 0x01, ...across!]
  const point = Buffer.concat([Buffer.from([4]), across!, up!])
  const compressed = ECDH.convertKey(point, "prime256v1", undefined, undefined, "compressed") as Buffer
  return [0x80, 0x24, ...compressed]
}

describe("published keys", () => {
  it("are the same Ed25519 key in the key set, in the DID document as JWK and as Multikey, and in the API", async () => {
    const set = await published("jwks.json")
    const [jwk] = set.body.keys as ReadonlyArray<JWK>
    expect(set.body.keys).toHaveLength(1)
    expect(jwk).toMatchObject({ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig" })
    expect(Object.keys(jwk!)).not.toContain("d")
    expect(jwk!.kid).toBe(await calculateJwkThumbprint(jwk!))
    await importJWK(jwk!)
    const { body: did, headers } = await published("did.json")
    expect(did.id).toBe(didOf(handle))
    const [first, second] = did.verificationMethod
    expect(first).toEqual({ id: `${did.id}#${jwk!.kid}`, type: "JsonWebKey", controller: did.id, publicKeyJwk: jwk })
    expect([...base58btc.decode(second.publicKeyMultibase)]).toEqual([0xed, 0x01, ...Buffer.from(jwk!.x!, "base64url")])
    expect(did.authentication).toEqual([first.id, second.id])
    expect(did.assertionMethod).toEqual([first.id, second.id])
    expect(headers.get("content-type")).toMatch(/^application\/did\+json/)
    for (const { headers: sent } of [set, { headers }]) {
      expect(sent.get("access-control-allow-origin")).toBe("*")
      expect(sent.get("cache-control")).toBe("public, max-age=0, must-revalidate")
      expect(sent.get("etag")).toMatch(/^"/)
    }
    const { body } = await ask("GET", "/signing-keys", key)
    expect(body).toMatchObject({ did: did.id, jwks_url: `${service.base}/@${handle}/jwks.json` })
    expect(body.keys.map(({ jwk }: { jwk: JWK }) => jwk)).toEqual(set.body.keys)
  })

  it("are created once by concurrent readers", async () => {
    const { handle: other } = await makeIdentity(service.base, session)
    const sets = await Promise.all(Array.from({ length: 8 }, () => published("jwks.json", other)))
    expect(new Set(sets.map(({ body }) => JSON.stringify(body)))).toHaveLength(1)
  })

  it("do not exist for an unknown Handle, and disappear with the Identity", async () => {
    expect((await published("jwks.json", "nobody-here")).status).toBe(404)
    const { handle: ended } = await makeIdentity(service.base, session)
    expect((await published("did.json", ended)).status).toBe(200)
    await call(service.base, "DELETE", `/api/identities/${ended}`, { token: session })
    for (const document of ["did.json", "jwks.json"]) expect((await published(document, ended)).status).toBe(404)
  })
})

describe("rotation", () => {
  it("publishes the next key beside the former one, which authenticates no longer", async () => {
    const before = (await published("jwks.json")).body.keys as ReadonlyArray<JWK>
    const { status, body } = await ask("POST", "/signing-key/rotate", session)
    expect(status).toBe(200)
    const [former, next] = body.keys
    expect(former).toMatchObject({ kid: before[0]!.kid, origin: "service" })
    expect(Date.parse(former.published_until) - Date.parse(former.retired_at)).toBe(7 * 86_400_000)
    expect(next).toMatchObject({ retired_at: null, published_until: null })
    const after = (await published("jwks.json")).body.keys as ReadonlyArray<JWK>
    expect(after.map(({ kid }) => kid)).toEqual([former.kid, next.kid])
    const { body: did } = await published("did.json")
    expect(did.authentication.join()).not.toContain(former.kid)
    expect(did.assertionMethod.join()).toContain(former.kid)
    const stored = await service.query<{ kid: string; gone: boolean }>(
      (sql) => sql`
        select k.kid, k.sealed is null as gone from signing_key k join identity i on i.id = k.identity_id
        where i.handle = ${handle} order by k.created_at`,
    )
    expect(stored).toEqual([
      { kid: former.kid, gone: true },
      { kid: next.kid, gone: false },
    ])
    const events = await call(service.base, "GET", "/api/events?type=proof.key_rotated", { token: session })
    expect(events.body.events[0].data).toEqual({ kid: next.kid, replaces: former.kid })
    const audit = await call(service.base, "GET", "/api/audit?action=proof.rotateKey", { token: session })
    expect(audit.body.records[0]).toMatchObject({ outcome: "allowed", scope: "proof:admin" })
    // After its overlap the former key is in no document.
    await service.query((sql) => sql`update signing_key set published_until = now() where kid = ${former.kid}`)
    for (const document of ["jwks.json", "did.json"])
      expect(JSON.stringify((await published(document)).body)).not.toContain(former.kid)
    expect(JSON.stringify((await ask("GET", "/signing-keys", session)).body)).not.toContain(former.kid)
  })

  it("leaves the ten latest of the former keys in the public documents", async () => {
    const { handle: own } = await makeIdentity(service.base, session)
    const listed = async () => (await published("jwks.json", own)).body.keys.map(({ kid }: JWK) => kid)
    const kids = await listed()
    while (kids.length < 13) {
      await call(service.base, "POST", `/api/identities/${own}/signing-key/rotate`, { token: session })
      kids.push((await listed()).at(-1))
    }
    expect(await listed()).toEqual(kids.slice(-11))
    expect((await published("did.json", own)).body.authentication.join()).toContain(kids.at(-1))
  })

  it("rejects an Identity Key", async () => {
    expect((await ask("POST", "/signing-key/rotate", key)).body.code).toBe("admin_required")
  })
})

describe("registered key", () => {
  it("is published after a proof of possession, until it is removed", async () => {
    for (const alg of ["EdDSA", "ES256"] as const) {
      const { jwk, proof, kid } = await ownKey(alg)
      const added = await ask("POST", "/signing-keys", key, { jwk, proof, name: "laptop" })
      expect(added.status, JSON.stringify(added.body)).toBe(201)
      expect(added.body).toMatchObject({ kid, origin: "agent", name: "laptop", jwk: { ...jwk, kid, use: "sig" } })
      const set = (await published("jwks.json")).body.keys as ReadonlyArray<JWK>
      expect(set.map((one) => one.kid)).toContain(kid)
      const { verificationMethod } = (await published("did.json")).body
      const { publicKeyMultibase } = verificationMethod.find(
        (method: any) => method.type === "Multikey" && method.id.includes(kid),
      )
      expect([...base58btc.decode(publicKeyMultibase)]).toEqual(multikeyOf(jwk))
      expect((await ask("POST", "/signing-keys", key, { jwk, proof })).body.code).toBe("conflict")
      expect((await ask("DELETE", `/signing-keys/${kid}`, key)).status).toBe(204)
      expect((await ask("DELETE", `/signing-keys/${kid}`, key)).status).toBe(404)
      expect(JSON.stringify((await published("jwks.json")).body)).not.toContain(kid)
    }
    const events = await call(service.base, "GET", "/api/events?type=proof.key_removed", { token: session })
    expect(events.body.events).toHaveLength(2)
  })

  it("is one of at most 20", async () => {
    const { handle: other, secrets } = await makeIdentity(service.base, session)
    await service.query(
      (sql) => sql`
        insert into signing_key (identity_id, kid, origin, jwk, registered_by, created_at)
        select i.id, 'key ' || n, 'agent', '{"kty":"OKP","crv":"Ed25519","x":"AA"}',
          -- The API key of the first ones does not exist any more.
          case when n <= 5 then gen_random_uuid() end, now()
        from identity i, generate_series(1, 24) n where i.handle = ${other}`,
    )
    const register = async () => {
      const { jwk, proof } = await ownKey("EdDSA", { subject: didOf(other) })
      const path = `/api/identities/${other}/signing-keys`
      return (await call(service.base, "POST", path, { token: secrets.identity_key, body: { jwk, proof } })).status
    }
    expect([await register(), await register()]).toEqual([201, 409])
  })

  it("needs a recent proof by the same key for this Identity and this service", async () => {
    const stranger = await ownKey("EdDSA")
    for (const wrong of [
      await ownKey("EdDSA", { audience: "https://elsewhere.example" }),
      await ownKey("EdDSA", { subject: didOf("somebody-else") }),
      await ownKey("EdDSA", { issuedAt: Math.floor(Date.now() / 1000) - 600 }),
      { ...(await ownKey("EdDSA")), proof: stranger.proof },
      { ...(await ownKey("EdDSA")), proof: "no.jwt.atall" },
    ]) {
      const { status, body } = await ask("POST", "/signing-keys", key, { jwk: wrong.jwk, proof: wrong.proof })
      expect([status, body.code]).toEqual([400, "key_proof_invalid"])
    }
  })

  it("must be a public key of a supported algorithm", async () => {
    const { jwk, proof } = await ownKey("EdDSA")
    const register = (given: unknown) => ask("POST", "/signing-keys", key, { jwk: given, proof })
    expect((await register({ ...jwk, crv: "X25519" })).body.code).toBe("algorithm_unsupported")
    expect((await register({ ...jwk, alg: "none" })).body.code).toBe("algorithm_unsupported")
    expect((await register({ ...jwk, d: jwk.x })).body.code).toBe("invalid_request")
    expect((await register({ ...jwk, x: "AA" })).body.code).toBe("key_proof_invalid")
  })

  it("cannot be registered with a narrowed key, whose limits the registered key would not have", async () => {
    const narrow = await call(service.base, "POST", `/api/identities/${handle}/keys`, {
      token: session,
      body: { name: "narrow", scopes: ["proof:write"] },
    })
    const { jwk, proof } = await ownKey("EdDSA")
    expect((await ask("POST", "/signing-keys", narrow.body.key, { jwk, proof })).body.code).toBe("scope_exceeds")
  })

  it("is withdrawn when the API key that registered it is revoked", async () => {
    const made = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "registrar" } })
    const { jwk, proof, kid } = await ownKey("EdDSA")
    expect((await ask("POST", "/signing-keys", made.body.key, { jwk, proof })).status).toBe(201)
    expect(JSON.stringify((await published("jwks.json")).body)).toContain(kid)
    await call(service.base, "DELETE", `/api/keys/${made.body.api_key.id}`, { token: session })
    expect(JSON.stringify((await published("jwks.json")).body)).not.toContain(kid)
    expect(JSON.stringify((await published("did.json")).body)).not.toContain(kid)
    // It takes no place of those that are registered, and can be registered again.
    expect((await ask("POST", "/signing-keys", session, { jwk, proof, name: "again" })).status).toBe(201)
    expect((await published("jwks.json")).body.keys.map((key: { kid: string }) => key.kid)).toContain(kid)
    expect((await ask("POST", "/signing-keys", session, { jwk, proof })).body.code).toBe("conflict")
    await ask("DELETE", `/signing-keys/${kid}`, session)
  })

  it("is not the key with which the service signs, which is rotated instead of removed", async () => {
    const { body } = await ask("GET", "/signing-keys", session)
    const current = body.keys.find(
      ({ origin, retired_at }: { origin: string; retired_at: string | null }) =>
        origin === "service" && retired_at === null,
    )
    expect((await ask("DELETE", `/signing-keys/${current.kid}`, session)).body.code).toBe("conflict")
  })

  it("raises an Event, and is hidden from other Orgs", async () => {
    const other = await signUp(service.base)
    expect((await ask("GET", "/signing-keys", other.session)).status).toBe(404)
    const raised = await eventually(
      () => call(service.base, "GET", "/api/events?type=proof.key_added", { token: session }),
      ({ body }) => body.events.length > 0,
    )
    expect(raised.body.events[0]).toMatchObject({ handle })
  })
})

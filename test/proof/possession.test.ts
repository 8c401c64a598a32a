/** The proof with which an agent registers a public key, by the test's clock. */
import { checked } from "@svc/cluster/proof/Possession"
import type { PublicJwk } from "@svc/domain/proof/SigningKey"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from "jose"

const now = 1_770_000_000
const wanted = { audience: "https://id.example", subject: "did:web:id.example:%40ada" }

const proofOf = async (
  alg: string,
  claims: { readonly iat?: number; readonly aud?: string; readonly sub?: string },
) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const proof = await new SignJWT({ aud: wanted.audience, sub: wanted.subject, ...claims })
    .setProtectedHeader({ alg })
    .sign(privateKey)
  return { jwk: (await exportJWK(publicKey)) as PublicJwk, proof }
}
const check = Effect.fnUntraced(function* (
  claims: Parameters<typeof proofOf>[1],
  more: Partial<PublicJwk> = {},
  alg = "EdDSA",
) {
  yield* TestClock.setTime(now * 1000)
  const { jwk, proof } = yield* Effect.promise(() => proofOf(alg, claims))
  return yield* checked({ ...jwk, ...more }, proof, wanted)
})

describe("The proof of a key", () => {
  it.effect.each<readonly [number | undefined, boolean]>([
    [now, true],
    [now - 360, true],
    [now - 361, false],
    [now + 60, true],
    [now + 61, false],
    [undefined, false],
  ])("made at %s is valid for five minutes, give or take a minute: %s", ([iat, isValid]) =>
    Effect.gen(function* () {
      const made = yield* Effect.result(check(iat === undefined ? {} : { iat }))
      if (isValid) expect(made).toMatchObject({ _tag: "Success" })
      else expect(made).toMatchObject({ failure: { code: "key_proof_invalid" } })
    }),
  )

  it.effect("is for this service and this Identity", () =>
    Effect.gen(function* () {
      for (const claims of [{ aud: "https://other.example" }, { sub: "did:web:id.example:%40bob" }])
        expect(yield* Effect.flip(check({ iat: now, ...claims }))).toMatchObject({ code: "key_proof_invalid" })
    }),
  )

  it.effect.each([
    ["EdDSA", undefined, "EdDSA"],
    ["EdDSA", "EdDSA", "EdDSA"],
    ["EdDSA", "Ed25519", "EdDSA"],
    ["EdDSA", "ES256", undefined],
    ["ES256", undefined, "ES256"],
    ["ES256", "ES256", "ES256"],
    ["ES256", "EdDSA", undefined],
    ["RS256", undefined, undefined],
  ] as const)("by %s with the algorithm %s publishes the key for %s", ([alg, named, published]) =>
    Effect.gen(function* () {
      const more = { ...(named === undefined ? {} : { alg: named }), kid: "own", use: "enc", ext: true } as object
      const made = yield* Effect.result(check({ iat: now }, more, alg))
      if (published === undefined) return expect(made).toMatchObject({ failure: { code: "algorithm_unsupported" } })
      if (made._tag === "Failure") return expect(made).toMatchObject({ _tag: "Success" })
      const { kid, jwk } = made.success
      const { alg: shown, kid: published_as, use, ...bare } = jwk
      expect([shown, published_as, use]).toEqual([published, kid, "sig"])
      expect(Object.keys(bare).toSorted()).toEqual(["crv", "kty", "x", ...(alg === "ES256" ? ["y"] : [])].toSorted())
      expect(kid).toBe(yield* Effect.promise(() => calculateJwkThumbprint(bare as never)))
    }),
  )
})

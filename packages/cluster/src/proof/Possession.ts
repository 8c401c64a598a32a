/**
 * Checks a public key that an agent registers: its algorithm, and that the agent has the private key. The proof is a JWT
 * that the key signed for this service (`aud`), for this Identity (`sub`), within the last five minutes (`iat`).
 */
import { AlgorithmUnsupported, KeyProofInvalid } from "@svc/domain/problems/Problem"
import type { PublicJwk } from "@svc/domain/proof/SigningKey"
import { Clock, Effect } from "effect"
import { jose } from "./Libraries.ts"

/** The algorithms of JWS by curve. `Ed25519` is the fully-specified name of RFC 9864. */
const algorithms: Readonly<Record<string, ReadonlyArray<string>>> = {
  "OKP Ed25519": ["EdDSA", "Ed25519"],
  "EC P-256": ["ES256"],
}

const invalid = (why: string) =>
  new KeyProofInvalid({
    detail: `The proof is not valid: ${why}. Sign a JWT with the key's private part, with \`aud\`, \`sub\` and \`iat\`.`,
  })

/** Returns the key in the form in which it is published. */
export const checked = Effect.fnUntraced(function* (
  jwk: PublicJwk,
  proof: string,
  wanted: { readonly audience: string; readonly subject: string },
) {
  const allowed = algorithms[`${jwk.kty} ${jwk.crv}`]
  if (allowed === undefined || (jwk.alg !== undefined && !allowed.includes(jwk.alg))) {
    return yield* new AlgorithmUnsupported({ detail: "A key must be an Ed25519 key or a P-256 key (ES256)." })
  }
  const { kty, crv, x } = jwk
  const bare = jwk.y === undefined ? { kty, crv, x } : { kty, crv, x, y: jwk.y }
  const { calculateJwkThumbprint, errors, importJWK, jwtVerify } = yield* Effect.promise(jose)
  const now = new Date(yield* Clock.currentTimeMillis)
  const failed = (error: unknown) => (error instanceof errors.JOSEError ? error.message : "the key is not a valid key")
  yield* Effect.tryPromise({
    try: async () => {
      const key = await importJWK(bare, allowed[0])
      await jwtVerify(proof, key, {
        ...wanted,
        algorithms: [...allowed],
        maxTokenAge: "5 minutes",
        clockTolerance: "1 minute",
        currentDate: now,
      })
    },
    catch: (error) => invalid(failed(error)),
  })
  const kid = yield* Effect.promise(() => calculateJwkThumbprint(bare))
  const published: PublicJwk = { ...bare, kid, alg: allowed[0]!, use: "sig" }
  return { kid, jwk: published }
})

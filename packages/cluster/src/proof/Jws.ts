/**
 * Signs JWS (RFC 7515) and JWT (RFC 7519). Written here, because the library signs on the thread pool, and handing over one
 * ES256 or EdDSA signature costs two to four times what the signature itself does. RS256, which takes a millisecond, goes to
 * the pool.
 */
import { type KeyObject, sign } from "node:crypto"
import { Effect } from "effect"

interface Header {
  readonly alg: "EdDSA" | "ES256" | "RS256"
  readonly [name: string]: string
}

interface Jws {
  readonly protected: string
  readonly payload: string
  readonly signature: string
}

const encoded = (text: string) => Buffer.from(text).toString("base64url")

const signatureOf = (alg: Header["alg"], data: Buffer, key: KeyObject): Effect.Effect<Buffer> => {
  if (alg === "EdDSA") return Effect.sync(() => sign(null, data, key))
  if (alg === "ES256") return Effect.sync(() => sign("sha256", data, { key, dsaEncoding: "ieee-p1363" }))
  return Effect.callback((resume) =>
    sign("sha256", data, key, (error, signature) =>
      resume(error === null ? Effect.succeed(signature) : Effect.die(error)),
    ),
  )
}

/** Signs a text. */
export const signed = (header: Header, text: string, key: KeyObject): Effect.Effect<Jws> => {
  const [protectedHeader, payload] = [encoded(JSON.stringify(header)), encoded(text)]
  return Effect.map(signatureOf(header.alg, Buffer.from(`${protectedHeader}.${payload}`), key), (signature): Jws => ({
    protected: protectedHeader,
    payload,
    signature: signature.toString("base64url"),
  }))
}

/** Signs claims as a JWT. */
export const jwt = (
  alg: Header["alg"],
  { kid, key }: { readonly kid: string; readonly key: KeyObject },
  claims: Readonly<Record<string, unknown>>,
): Effect.Effect<string> =>
  Effect.map(
    signed({ alg, kid, typ: "JWT" }, JSON.stringify(claims), key),
    (jws) => `${jws.protected}.${jws.payload}.${jws.signature}`,
  )

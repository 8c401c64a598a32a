/** The public keys of an Identity, with which others verify what it signs. */
import { Schema } from "effect"
import { Line, ShownUrl, Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"

/** Maximum number of keys that an agent may register for its Identity. */
export const registeredAtMost = 20

const Short = Text.check(Schema.isMaxLength(100))

/** A public key as a JWK (RFC 7517). */
export const PublicJwk = Schema.Struct({
  kty: Short,
  crv: Short,
  x: Short,
  y: Schema.optionalKey(Short),
  kid: Schema.optionalKey(Short),
  alg: Schema.optionalKey(Short),
  use: Schema.optionalKey(Short),
})
export type PublicJwk = typeof PublicJwk.Type

export const SigningKey = Schema.Struct({
  kid: Schema.String.annotate({ description: "The thumbprint of the key (RFC 7638)." }),
  /** `service`: the service signs with it. `agent`: the agent registered it and has the private key. */
  origin: Schema.Literals(["service", "agent"]),
  name: Schema.NullOr(Schema.String),
  jwk: PublicJwk,
  created_at: Timestamp,
  /** When the key was rotated. It signs nothing since then. */
  retired_at: Schema.NullOr(Timestamp),
  /** When a rotated key is no longer published. */
  published_until: Schema.NullOr(Timestamp),
}).annotate({ identifier: "SigningKey" })
export type SigningKey = typeof SigningKey.Type

/** The keys of an Identity and the addresses at which anybody reads them. */
export const SigningKeys = Schema.Struct({
  did: Schema.String,
  did_url: ShownUrl,
  jwks_url: ShownUrl,
  keys: Schema.Array(SigningKey),
}).annotate({ identifier: "SigningKeys" })

export const NewSigningKey = Schema.Struct({
  jwk: PublicJwk,
  name: Schema.optionalKey(Line(100)),
  /** A JWT that the key signed: `aud` is the service's base address, `sub` the DID, `iat` at most five minutes ago. */
  proof: Text.check(Schema.isMaxLength(4096)),
})
export type NewSigningKey = typeof NewSigningKey.Type

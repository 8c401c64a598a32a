/** The public documents of an Identity's keys: its DID document (did:web, DID Core) and its JWK set (RFC 7517). */
import { type AddressBook, cardUrl, did, email, profileUrl } from "@svc/domain/Addresses"
import type { PublicJwk } from "@svc/domain/proof/SigningKey"
import { base58btc } from "multiformats/bases/base58"
import type { PublishedKeys } from "./SigningKeys.ts"

/** The Multicodec prefixes of the key types. */
const ed25519 = [0xed, 0x01]
const p256 = [0x80, 0x24]

/** Returns a public key as a Multikey: the Multicodec prefix and the key, a P-256 point compressed, in base58btc. */
const multibase = ({ crv, x, y }: PublicJwk): string => {
  const bytes = Buffer.from(x, "base64url")
  const prefix =
    crv === "Ed25519" ? ed25519 : [...p256, (Buffer.from(y ?? "", "base64url").at(-1) ?? 0) % 2 === 0 ? 0x02 : 0x03]
  return base58btc.encode(Uint8Array.from([...prefix, ...bytes]))
}

/** Returns the DID document, of the profile's DID if no other is given. Each key is a `JsonWebKey` and a `Multikey`, because verifiers know one or the other. */
export const didDocument = (book: AddressBook, { handle, keys }: PublishedKeys, id = did(book, handle)) => {
  const main = did(book, handle)
  const isCurrent = ({ retired_at }: (typeof keys)[number]) => retired_at === null
  const namesOf = ({ kid }: { readonly kid: string }) => [`${id}#${kid}`, `${id}#${kid}-multikey`]
  return {
    "@context": [
      "https://www.w3.org/ns/did/v1",
      "https://w3id.org/security/jwk/v1",
      "https://w3id.org/security/multikey/v1",
    ],
    id,
    // Receivers of mail compare `mailto:` with the sender.
    alsoKnownAs: [
      ...(id === main ? [] : [main]),
      profileUrl(book, handle),
      `acct:${email(book, handle)}`,
      `mailto:${email(book, handle)}`,
    ],
    verificationMethod: keys.flatMap((key) => {
      const [jwk, multikey] = namesOf(key)
      return [
        { id: jwk, type: "JsonWebKey", controller: id, publicKeyJwk: key.jwk },
        { id: multikey, type: "Multikey", controller: id, publicKeyMultibase: multibase(key.jwk) },
      ]
    }),
    // A rotated key still verifies what it signed, but authenticates nobody.
    authentication: keys.filter(isCurrent).flatMap(namesOf),
    assertionMethod: keys.flatMap(namesOf),
    service: [
      { id: `${id}#card`, type: "A2AAgentCard", serviceEndpoint: cardUrl(book, handle) },
      { id: `${id}#mail`, type: "EmailAddress", serviceEndpoint: `mailto:${email(book, handle)}` },
    ],
  }
}

export const jwkSet = ({ keys }: PublishedKeys) => ({ keys: keys.map(({ jwk }) => jwk) })

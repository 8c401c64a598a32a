/** Signs A2A cards with the key of their Identity: a JWS (RFC 7515) over the canonical JSON (RFC 8785) of the card. */
import type { KeyObject } from "node:crypto"
import { type AddressBook, jwksUrl } from "@svc/domain/Addresses"
import { type StoredSignatures, signables } from "@svc/domain/card/CardSignature"
import { Effect } from "effect"
import * as Jws from "./Jws.ts"
import { canonicalize } from "./Libraries.ts"

export interface CardKey {
  readonly kid: string
  readonly key: KeyObject
}

/** Returns one signature per canonical form; usually the forms are equal. */
export const signCard = Effect.fnUntraced(function* (
  book: AddressBook,
  handle: string,
  document: Readonly<Record<string, unknown>>,
  basis: string,
  { kid, key }: CardKey,
) {
  const canonicalJson = yield* Effect.promise(canonicalize)
  const payloads = new Set(signables(document).map((form) => canonicalJson(form)!))
  const header = { alg: "EdDSA", typ: "JOSE", kid, jku: jwksUrl(book, handle) } as const
  const signatures = yield* Effect.forEach(payloads, (payload) =>
    Effect.map(Jws.signed(header, payload, key), (jws) => ({ protected: jws.protected, signature: jws.signature })),
  )
  const stored: StoredSignatures = { basis, signatures }
  return stored
})

/** Signs A2A cards with the key of their Identity: a JWS (RFC 7515) over the canonical JSON (RFC 8785) of the card. */
import type { KeyObject } from "node:crypto"
import { type AddressBook, jwksUrl } from "@svc/domain/Addresses"
import { type StoredSignatures, signables } from "@svc/domain/card/CardSignature"
import { Effect } from "effect"
import { jose } from "./Libraries.ts"

export interface CardKey {
  readonly kid: string
  readonly key: KeyObject
}

const encoder = new TextEncoder()

/** Returns one signature per canonical form; usually the forms are equal. */
export const signCard = Effect.fnUntraced(function* (
  book: AddressBook,
  handle: string,
  document: Readonly<Record<string, unknown>>,
  basis: string,
  { kid, key }: CardKey,
) {
  const { FlattenedSign } = yield* Effect.promise(jose)
  const { default: canonicalize } = yield* Effect.promise(() => import("canonicalize"))
  const payloads = new Set(signables(document).map((form) => canonicalize(form)!))
  const header = { alg: "EdDSA", typ: "JOSE", kid, jku: jwksUrl(book, handle) }
  const signatures = yield* Effect.forEach(payloads, (payload) =>
    Effect.promise(async () => {
      const jws = await new FlattenedSign(encoder.encode(payload)).setProtectedHeader(header).sign(key)
      return { protected: jws.protected!, signature: jws.signature }
    }),
  )
  const stored: StoredSignatures = { basis, signatures }
  return stored
})

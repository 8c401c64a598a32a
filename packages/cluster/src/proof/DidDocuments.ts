/**
 * Reads DID documents (did:web) and says whether one names a mail address. Documents of Identities of this service come
 * from the store, those of others from their hosts, which are untrusted.
 */
import { Addresses } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import { documentUrl, handleOf } from "@svc/domain/proof/DidWeb"
import { Context, Effect, Layer } from "effect"
import { didDocument } from "./DidDocument.ts"
import * as ForeignDocuments from "./ForeignDocuments.ts"
import { SigningKeys } from "./SigningKeys.ts"

/** Returns the mail address of a `mailto:` URI, in the form in which addresses are compared. */
const mailboxOf = (uri: unknown): string | undefined => {
  const encoded = typeof uri === "string" ? /^mailto:([^?]+)$/i.exec(uri)?.[1] : undefined
  if (encoded === undefined) return undefined
  try {
    return comparable(decodeURIComponent(encoded))
  } catch {
    return undefined
  }
}

const comparable = (address: string): string | undefined => {
  const parsed = AddrSpec.parse(address)
  return parsed._tag === "Address" ? AddrSpec.sameAs(parsed.address) : undefined
}

const make = Effect.gen(function* () {
  const book = yield* Addresses
  const signingKeys = yield* SigningKeys
  const read = yield* ForeignDocuments.make

  const documentOf = Effect.fnUntraced(function* (did: string) {
    const handle = handleOf(book, did)
    if (handle === undefined) {
      const url = documentUrl(book, did)
      return url === undefined ? undefined : yield* read(url)
    }
    const published = yield* Effect.mapError(
      signingKeys.published(canonical(handle)),
      () => new ForeignDocuments.DocumentUnreadable({ message: "The document could not be read.", isTemporary: true }),
    )
    return published === undefined ? undefined : didDocument(book, published, did)
  })

  return {
    /**
     * Returns whether the document of the DID says that the address is another name of its subject. A document that
     * does not exist, or is of another DID, says nothing.
     */
    names: Effect.fn("DidDocuments.names")(function* (did: string, address: string) {
      const document: Readonly<Record<string, unknown>> | undefined = yield* documentOf(did)
      const wanted = comparable(address)
      const also = document?.["alsoKnownAs"]
      return (
        wanted !== undefined &&
        document?.["id"] === did &&
        Array.isArray(also) &&
        also.some((uri) => mailboxOf(uri) === wanted)
      )
    }),
  }
})

export class DidDocuments extends Context.Service<DidDocuments, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/DidDocuments",
) {
  static readonly layer = Layer.effect(DidDocuments, make).pipe(Layer.provide(SigningKeys.layer))
}

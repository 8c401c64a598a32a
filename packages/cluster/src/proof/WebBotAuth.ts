/**
 * Web Bot Auth: signatures of web requests (RFC 9421) that name their signer by an origin, and the signed directory of
 * keys at that origin (draft-meunier-webbotauth-httpsig-protocol, draft-meunier-webbotauth-httpsig-directory). The origin
 * of an Identity is its Tunnel's address.
 */
import { randomBytes, sign } from "node:crypto"
import { type AddressBook, tunnelUrl } from "@svc/domain/Addresses"
import type { PublicJwk } from "@svc/domain/proof/SigningKey"
import { Effect } from "effect"
import { httpSignatures } from "./Libraries.ts"
import type { PrivateKey } from "./SigningKeys.ts"

export const requestTag = "web-bot-auth"
export const directoryTag = "http-message-signatures-directory"
export const directoryPath = "/.well-known/http-message-signatures-directory"
export const directoryType = "application/http-message-signatures-directory+json"
/** The label of a signature, which is also the member of `Signature-Agent` with its origin. */
const label = "sig1"
/** Seconds for which the signature of a directory is valid. A verifier may keep the directory as long. */
export const directorySeconds = 300

const signerOf = ({ key }: PrivateKey) => ({
  algorithm: "ed25519",
  sign: (data: Uint8Array) => new Uint8Array(sign(null, data, key)),
})

interface Validity {
  /** In seconds. */
  readonly created: number
  readonly expires: number
}

const parametersOf = ({ created, expires }: Validity, { kid }: PrivateKey, tag: string) => ({
  created,
  expires,
  keyid: kid,
  alg: "ed25519",
  nonce: randomBytes(64).toString("base64"),
  tag,
})

/** A request to sign. */
export interface Target {
  readonly method: string
  readonly url: URL
  /** Further fields that the signature covers, by lower-case name. */
  readonly fields: ReadonlyArray<readonly [string, string]>
}

/** Returns the fields that sign a request. The signature covers the method, the address and the given fields. */
export const signRequest = Effect.fnUntraced(function* (
  book: AddressBook,
  handle: string,
  { method, url, fields }: Target,
  key: PrivateKey,
  validity: Validity,
) {
  const { component, createSignatureSync } = yield* Effect.promise(httpSignatures)
  const agent = `${label}="${tunnelUrl(book, handle)}"`
  const { signature, signatureInput } = createSignatureSync(
    {
      kind: "request",
      method,
      targetUri: url.href,
      fields: [["signature-agent", agent] as const, ...fields].map(([name, value]) => ({ name, value })),
    },
    {
      label,
      components: [
        "@authority",
        "@method",
        "@path",
        ...(url.search === "" ? [] : ["@query"]),
        component("signature-agent", { key: label }),
        ...fields.map(([name]) => name),
      ],
      parameters: parametersOf(validity, key, requestTag),
      signer: signerOf(key),
    },
  )
  return { "signature-agent": agent, "signature-input": signatureInput, signature }
})

/** A signature of the directory, without its label. */
export interface DirectorySignature {
  readonly input: string
  readonly signature: string
}

/** Signs the directory, which binds the key to the origin. */
export const signDirectory = Effect.fnUntraced(function* (
  book: AddressBook,
  handle: string,
  key: PrivateKey,
  now: number,
  seconds: number = directorySeconds,
) {
  const { component, createSignatureSync } = yield* Effect.promise(httpSignatures)
  const created = Math.floor(now / 1000)
  const { signature, signatureInput } = createSignatureSync(
    {
      kind: "response",
      status: 200,
      fields: [],
      request: { kind: "request", method: "GET", targetUri: tunnelUrl(book, handle) + directoryPath, fields: [] },
    },
    {
      label,
      components: [component("@authority", { req: true })],
      parameters: parametersOf({ created, expires: created + seconds }, key, directoryTag),
      signer: signerOf(key),
    },
  )
  const bare = (field: string) => field.slice(`${label}=`.length)
  const signed: DirectorySignature = { input: bare(signatureInput), signature: bare(signature) }
  return signed
})

/** Returns the fields with one signature for each key of the directory. */
export const directoryFields = (signatures: ReadonlyArray<DirectorySignature>) => {
  const labelled = (member: keyof DirectorySignature) =>
    signatures.map((signed, n) => `sig${n + 1}=${signed[member]}`).join(", ")
  return { "signature-input": labelled("input"), signature: labelled("signature") }
}

/** Returns the directory's content. It lists only keys that sign it. */
export const directoryOf = (keys: ReadonlyArray<PublicJwk>): string => JSON.stringify({ keys })

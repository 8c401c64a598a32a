/** What the sagas mint and the edges check: Identity Keys and IMAP passwords, kept as hashes and, until acknowledged, sealed. */
import { createHash, randomBytes } from "node:crypto"
import { displayPrefix, make } from "@svc/domain/account/Token"

export const sha256 = (text: string): Uint8Array => new Uint8Array(createHash("sha256").update(text).digest())

export type TokenKind = "session" | "admin_key" | "identity_key"

export interface Minted {
  readonly token: string
  readonly hash: Uint8Array
  readonly prefix: string
}

/** A new credential; only its hash is stored. */
export const mint = (kind: TokenKind): Minted => {
  const token = make(kind, randomBytes(32))
  return { token, hash: sha256(token), prefix: displayPrefix(token) }
}

/** A password for mail readers: 160 bits that people can type, without look-alike characters. */
export const mintPassword = (): string => {
  const alphabet = "abcdefghijkmnpqrstuvwxyz23456789"
  const letters = Array.from(randomBytes(32), (byte) => alphabet[byte & 31]).join("")
  return letters.match(/.{8}/g)!.join("-")
}

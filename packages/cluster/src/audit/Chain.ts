/**
 * The chain of hashes over an Org's records: `hash = SHA-256(previous ‖ record)`, the record as canonical JSON without its
 * seal. Where the service did not write it (`Proof`), a line `unproven` follows it. Pure, so that who has an export can walk it without us (`svc audit verify`).
 */
import { createHash, createPublicKey, type KeyObject, sign as signBytes, verify as verifyBytes } from "node:crypto"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Members in the order of their names, no white space (RFC 8785; our numbers are whole). */
export const canonical = (value: Json): string =>
  value === null || typeof value !== "object"
    ? JSON.stringify(value)
    : Array.isArray(value)
      ? `[${value.map(canonical).join(",")}]`
      : `{${Object.entries(value)
          .toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
          .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
          .join(",")}}`

/** Before the first record of an Org. */
export const origin = (org: string): Uint8Array => createHash("sha256").update(`svc-audit-1 ${org}`).digest()

/** The hash of a record as the API shows it; its seal is no part of it, but for what was found when it was made. */
export const hashOf = (
  previous: Uint8Array,
  record: { readonly [name: string]: Json },
  unproven = false,
): Uint8Array => {
  const { sealed: _, ...rest } = record
  const hash = createHash("sha256").update(previous).update(canonical(rest))
  return (unproven ? hash.update("\nunproven") : hash).digest()
}

/** Where a chain ends. */
export interface Head {
  readonly org_id: string
  readonly seq: number
  /** Hex. */
  readonly hash: string
  readonly sealed_at: string
}

const signed = ({ org_id, seq, hash, sealed_at }: Head) =>
  Buffer.from(`svc-audit-head-1\n${org_id}\n${seq}\n${hash}\n${sealed_at}`)

/** ES256 in base64url. */
export const sign = (key: KeyObject, head: Head): string =>
  signBytes("sha256", signed(head), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")

export const isSignedBy = (jwk: Readonly<Record<string, unknown>>, head: Head, signature: string): boolean => {
  const key = createPublicKey({ key: jwk as never, format: "jwk" })
  return verifyBytes("sha256", signed(head), { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"))
}

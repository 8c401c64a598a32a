/**
 * The chain over an Org's records. A record's hash is `SHA-256(previous ‖ record)`, with the record as canonical JSON without its
 * seal; if the service did not write the record (`Proof`), a line `unproven` follows. Anybody who has an export can compute the
 * hashes (`svc audit verify`), so a hash alone does not show who computed it. The seal's MAC does: it covers the Org, the
 * record's number, the hash before it and its own hash, under a key derived from the master key.
 */
import {
  createHash,
  createHmac,
  createPublicKey,
  type KeyObject,
  sign as signBytes,
  timingSafeEqual,
  verify as verifyBytes,
} from "node:crypto"
import type { AuditTarget } from "@svc/domain/audit/AuditRecord"
import type { SealKeys } from "../sealing/ServiceKey.ts"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Returns canonical JSON: members sorted by name, no white space (RFC 8785; all numbers are integers). */
export const canonical = (value: Json): string =>
  value === null || typeof value !== "object"
    ? JSON.stringify(value)
    : Array.isArray(value)
      ? `[${value.map(canonical).join(",")}]`
      : `{${Object.keys(value)
          .toSorted()
          .map((name) => `${JSON.stringify(name)}:${canonical((value as { readonly [name: string]: Json })[name]!)}`)
          .join(",")}}`

/** Returns the hash before an Org's first record. */
export const origin = (org: string): Uint8Array => createHash("sha256").update(`svc-audit-1 ${org}`).digest()

/** Returns the hash of a record as the API shows it, without its seal but with the finding made when it was sealed. */
export const hashOf = (
  previous: Uint8Array,
  record: { readonly [name: string]: Json },
  unproven = false,
): Uint8Array => {
  const { sealed: _, ...rest } = record
  const hash = createHash("sha256").update(previous).update(canonical(rest))
  return (unproven ? hash.update("\nunproven") : hash).digest()
}

/** The input of a MAC. */
interface Sealed {
  readonly org_id: string
  readonly seq: number
  /** Hex. */
  readonly previous: string
  readonly hash: string
}

/** Returns the HMAC-SHA-256, cut to 16 bytes. */
export const macOf = (key: KeyObject, { org_id, seq, previous, hash }: Sealed): Uint8Array =>
  createHmac("sha256", key)
    .update(JSON.stringify(["svc-audit-seal", 1, org_id, seq, previous, hash]))
    .digest()
    .subarray(0, 16)

/** Returns whether one of the keys made the MAC. */
export const isSealedBy = (
  byId: SealKeys["byId"],
  sealed: Sealed,
  key: string | null,
  mac: Uint8Array | null,
): boolean => {
  const known = key === null ? undefined : byId.get(key)
  return known !== undefined && mac !== null && mac.length === 16 && timingSafeEqual(mac, macOf(known, sealed))
}

/** The end of a chain. */
interface Head {
  readonly org_id: string
  readonly seq: number
  /** Hex. */
  readonly hash: string
  readonly sealed_at: string
}

const signed = ({ org_id, seq, hash, sealed_at }: Head) =>
  Buffer.from(`svc-audit-head-1\n${org_id}\n${seq}\n${hash}\n${sealed_at}`)

/** Returns an ES256 signature in base64url. */
export const sign = (key: KeyObject, head: Head): string =>
  signBytes("sha256", signed(head), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")

const isSigned = (jwk: Readonly<Record<string, unknown>>, bytes: Buffer, signature: string): boolean => {
  const key = createPublicKey({ key: jwk as never, format: "jwk" })
  return verifyBytes("sha256", bytes, { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"))
}

export const isSignedBy = (jwk: Readonly<Record<string, unknown>>, head: Head, signature: string): boolean =>
  isSigned(jwk, signed(head), signature)

/** The action of a bridge: the record that closes a chain from a version without MACs. */
export const bridgeAction = "audit.bridge"

type End = Pick<Head, "org_id" | "seq" | "hash">

const bridged = ({ org_id, seq, hash }: End) => Buffer.from(`svc-audit-bridge-1\n${org_id}\n${seq}\n${hash}`)

/** Returns the target of a bridge: the number and hash of the last record before it, signed by the service (ES256). */
export const bridgeOf = (key: KeyObject, end: End): AuditTarget => ({
  type: "audit",
  id: `${end.seq}:${end.hash}`,
  name: signBytes("sha256", bridged(end), { key, dsaEncoding: "ieee-p1363" }).toString("base64url"),
})

export const isBridgeOf = (
  jwk: Readonly<Record<string, unknown>>,
  end: End,
  { id, name }: Pick<AuditTarget, "id" | "name">,
): boolean => id === `${end.seq}:${end.hash}` && isSigned(jwk, bridged(end), name ?? "")

/**
 * Proves that the service wrote an audit record: a MAC over all members of the record, including its Org, id and time,
 * made when the record is created. Someone with access to the database alone can neither create one nor reuse that of
 * another record, because its id already exists. Sealing and exports check it.
 */
import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto"

/** The service's key, and the time (in milliseconds) from which a record needs a proof. */
export interface ProofKey {
  readonly key: KeyObject
  readonly since: number
}

/** The proved members, in order. A new member of a record needs a new version of the proof. */
const members = [
  "org_id",
  "id",
  "at",
  "class",
  "action",
  "actor_kind",
  "actor_id",
  "actor_name",
  "actor_client",
  "identity_id",
  "handle",
  "target_type",
  "target_id",
  "target_name",
  "outcome",
  "code",
  "scope",
  "address",
  "via",
  "tool",
  "user_agent",
  "request_id",
  "count",
] as const

/** A row of a record; the time is RFC 3339, or a Date from the driver. */
type Provable = { readonly [Name in (typeof members)[number]]: string | number | Date | null }

const bytes = 16

/** Returns 16 bytes of HMAC-SHA-256 in base64url. */
export const of = ({ key }: ProofKey, row: Provable): string =>
  createHmac("sha256", key)
    // A Date is converted to the text that it was written from.
    .update(JSON.stringify(["audit", 1, ...members.map((name) => row[name])]))
    .digest()
    .subarray(0, bytes)
    .toString("base64url")

const isOf = (key: ProofKey, row: Provable, proof: string) => {
  const [given, made] = [Buffer.from(proof), Buffer.from(of(key, row))]
  return given.length === made.length && timingSafeEqual(given, made)
}

/** Returns whether the service wrote a record. A record without a proof is accepted if it is older than proofs. */
export const holds = (
  key: ProofKey,
  row: Provable & { readonly proof: string | null },
  /** The record's time in milliseconds. */
  time: number,
): boolean => (row.proof === null ? time < key.since : isOf(key, row, row.proof))

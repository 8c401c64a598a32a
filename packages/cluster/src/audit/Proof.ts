/**
 * That a record of the audit log was written by the service: a MAC over all that the record says, its Org, id and time
 * among it, made when it is noted. Whoever has only the database can neither make one for a record of theirs nor take
 * another record's: that one's id is there already. Sealing looks at it, and so does an export.
 */
import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto"

/** The service's key for it, and the time (in milliseconds) from which a record without a proof is none of ours. */
export interface ProofKey {
  readonly key: KeyObject
  readonly since: number
}

/** What of a record is proved, in the order of the proof: a record that gains a member needs another form of it. */
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

/** A record as its row has it; the time as RFC 3339, or as the driver reads it. */
export type Provable = { readonly [Name in (typeof members)[number]]: string | number | Date | null }

const bytes = 16

/** 16 bytes of HMAC-SHA-256 in base64url. */
export const of = ({ key }: ProofKey, row: Provable): string =>
  createHmac("sha256", key)
    // A Date becomes the text that it was written from.
    .update(JSON.stringify(["audit", 1, ...members.map((name) => row[name])]))
    .digest()
    .subarray(0, bytes)
    .toString("base64url")

const isOf = (key: ProofKey, row: Provable, proof: string) => {
  const [given, made] = [Buffer.from(proof), Buffer.from(of(key, row))]
  return given.length === made.length && timingSafeEqual(given, made)
}

/** Whether the service wrote a record; one without a proof is taken where it was there, or came, at a time before proofs. */
export const holds = (
  key: ProofKey,
  row: Provable & { readonly proof: string | null },
  /** Milliseconds. */
  time: number,
): boolean => (row.proof === null ? time < key.since : isOf(key, row, row.proof))

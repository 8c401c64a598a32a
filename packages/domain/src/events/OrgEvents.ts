/**
 * The data of each Org-level Event, which concerns no single Identity and reaches no Webhook: the list is its only
 * delivery route. Like all data of Events it is JSON as stored, so a schema here transforms nothing.
 */
import { Schema } from "effect"
import { Uuid } from "../IdSchemas.ts"
import { GrantEnd } from "../oauth/Grant.ts"
import { Nothing } from "./EmptyData.ts"

const Instant = Schema.String.annotate({ format: "date-time" })

/** The key that was minted or revoked; `name` is the Handle for an Identity Key. */
const Key = Schema.Struct({
  key_id: Uuid,
  name: Schema.String,
  scope: Schema.Literals(["org", "identity"]),
  /** Null for an Admin Key. */
  identity_id: Schema.NullOr(Uuid),
  handle: Schema.NullOr(Schema.String),
})

/** The rights that the account holder gave a client. */
const Granted = Schema.Struct({
  grant_id: Uuid,
  client_id: Schema.String,
  /** As the client calls itself. */
  client_name: Schema.String,
  redirect_host: Schema.String,
  scopes: Schema.Array(Schema.String),
  /** Null for the whole account. */
  handles: Schema.NullOr(Schema.Array(Schema.String)),
  /** Where it may call from, null for everywhere; absent in Events from before they said it. */
  networks: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))),
  expires_at: Instant,
})
/** A key and its end. */
const EndingKey = Schema.Struct({ ...Key.fields, expires_at: Instant })

/** A limit, and how much of it is used: bytes, messages or Identities. */
const Usage = Schema.Struct({
  limit: Schema.Literals(["identity_quota", "mail_hourly", "tunnel_transfer", "mailbox_bytes"]),
  /** Absent in Events from before they said it. */
  identity: Schema.optionalKey(
    Schema.String.annotate({ description: "The Handle of the Identity; left out where the limit is the Org's." }),
  ),
  used: Schema.Finite,
  quota: Schema.Finite,
  /** The time after which it is renewed; null for what time does not give back. */
  window: Schema.NullOr(Schema.Literals(["hour", "day"])),
})

export const orgEvents = {
  "identity.deleted": Schema.Struct({ identity_id: Uuid, handle: Schema.String }).annotate({
    description: "An Identity is gone. Its Handle stays taken.",
  }),
  "tunnel.transfer_blocked": Usage.annotate({
    description: "The Org's Tunnels have transferred all they may today; they serve nothing until the day ends (UTC).",
  }),
  "api_key.created": Key.annotate({ description: "A key was minted." }),
  "api_key.revoked": Key.annotate({ description: "A key was revoked, by somebody or with its Identity." }),
  "grant.created": Granted.annotate({ description: "A client was allowed to act for the account." }),
  "grant.changed": Granted.annotate({ description: "The scopes of an app were changed." }),
  "grant.revoked": Schema.Struct({
    grant_id: Uuid,
    client_id: Schema.String,
    client_name: Schema.String,
    reason: GrantEnd,
  }).annotate({
    description:
      "A client may do nothing any more: its holder or the client ended it, a token or code was used twice, its time was over, or what it was for is gone.",
  }),
  "api_key.rotated": Schema.Struct({
    ...EndingKey.fields,
    /** The key that took its place. */
    replaced_by: Uuid,
  }).annotate({ description: "A key was replaced by another; it works until the overlap is over." }),
  "api_key.expiring": EndingKey.annotate({ description: "A key ends in 7 days, or in one." }),
  "api_key.expired": EndingKey.annotate({ description: "A key has ended." }),
  "limit.near": Usage.annotate({ description: "Four fifths of a limit are used." }),
  "audit.gap": Schema.Struct({
    count: Schema.Int.annotate({ description: "How many." }),
    since: Instant.annotate({ description: "When the first of the acts was." }),
    until: Instant.annotate({ description: "When the last of the acts was." }),
  }).annotate({
    description: "Records of the audit log were lost: so many, of acts within this time.",
  }),
  "audit.head": Schema.Struct({
    seq: Schema.Int.annotate({ description: "The number of the last record that is sealed." }),
    hash: Schema.String.annotate({ description: "Its hash: SHA-256 in hex." }),
    sealed_at: Instant.annotate({ description: "When it was sealed." }),
    signature: Schema.String.annotate({ description: "ES256 in base64url, by the key of `GET /api/audit/head`." }),
  }).annotate({
    description: "The signed head of the audit log, sent once a day so that it can be stored elsewhere.",
  }),
  "account.deletion_started": Nothing.annotate({
    description: "The deletion of the account was confirmed; no credential works any more.",
  }),
} as const

/**
 * The data of each Event that concerns the Org. Only the list of Events contains them; Webhooks never receive them. The
 * data is stored as JSON, so the schemas transform nothing.
 */
import { Schema } from "effect"
import { Uuid } from "../IdSchemas.ts"
import { GrantEnd } from "../oauth/Grant.ts"
import { Nothing } from "./IdentityEvents.ts"

const Instant = Schema.String.annotate({ format: "date-time" })

/** The created or revoked key; `name` is the Handle for an Identity Key. */
const Key = Schema.Struct({
  key_id: Uuid,
  name: Schema.String,
  scope: Schema.Literals(["org", "identity"]),
  /** Null for an Admin Key. */
  identity_id: Schema.NullOr(Uuid),
  handle: Schema.NullOr(Schema.String),
})

/** The rights that the account holder granted to an app. */
const Granted = Schema.Struct({
  grant_id: Uuid,
  client_id: Schema.String,
  /** The app's name, which it chose itself. */
  client_name: Schema.String,
  redirect_host: Schema.String,
  scopes: Schema.Array(Schema.String),
  /** Null for the whole account. */
  handles: Schema.NullOr(Schema.Array(Schema.String)),
  /** Networks from which the app may call; null for no restriction. Absent in Events of earlier versions. */
  networks: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))),
  expires_at: Instant,
})
/** A key and its expiry. */
const EndingKey = Schema.Struct({ ...Key.fields, expires_at: Instant })

/** A limit and its current use, in bytes, messages or Identities. */
const Usage = Schema.Struct({
  limit: Schema.Literals(["identity_quota", "mail_hourly", "tunnel_transfer", "mailbox_bytes"]),
  /** Absent in Events of earlier versions. */
  identity: Schema.optionalKey(
    Schema.String.annotate({ description: "The Handle of the Identity; absent if the limit belongs to the Org." }),
  ),
  used: Schema.Finite,
  quota: Schema.Finite,
  /** The period after which the limit resets; null for a limit that does not reset. */
  window: Schema.NullOr(Schema.Literals(["hour", "day"])),
})

export const orgEvents = {
  "identity.deleted": Schema.Struct({ identity_id: Uuid, handle: Schema.String }).annotate({
    description: "An Identity was deleted. Its Handle stays taken.",
  }),
  "tunnel.transfer_blocked": Usage.annotate({
    description:
      "The daily transfer of the account's Tunnels is used up. They serve nothing until the end of the day (UTC).",
  }),
  "api_key.created": Key.annotate({ description: "A key was created." }),
  "api_key.revoked": Key.annotate({ description: "A key was revoked, directly or with its Identity." }),
  "grant.created": Granted.annotate({ description: "An app was given access to the account." }),
  "grant.changed": Granted.annotate({ description: "The access of an app was changed." }),
  "grant.revoked": Schema.Struct({
    grant_id: Uuid,
    client_id: Schema.String,
    client_name: Schema.String,
    reason: GrantEnd,
  }).annotate({
    description:
      "The access of an app ended: the account holder or the app ended it, a token or code was used twice, it expired, or its Identities were deleted.",
  }),
  "api_key.rotated": Schema.Struct({
    ...EndingKey.fields,
    /** The key that replaces it. */
    replaced_by: Uuid,
  }).annotate({ description: "A key was replaced by a new one. It works until the overlap ends." }),
  "api_key.expiring": EndingKey.annotate({ description: "A key expires in 7 days or in 1 day." }),
  "api_key.expired": EndingKey.annotate({ description: "A key expired." }),
  "limit.near": Usage.annotate({ description: "80% of a limit is used." }),
  "audit.gap": Schema.Struct({
    count: Schema.Int.annotate({ description: "The number of lost records." }),
    since: Instant.annotate({ description: "Time of the first operation." }),
    until: Instant.annotate({ description: "Time of the last operation." }),
  }).annotate({
    description: "Audit records were lost: their number and time span.",
  }),
  "audit.head": Schema.Struct({
    seq: Schema.Int.annotate({ description: "Number of the last sealed record." }),
    hash: Schema.String.annotate({ description: "Hash of the last sealed record: SHA-256 in hex." }),
    sealed_at: Instant.annotate({ description: "Time of the seal." }),
    signature: Schema.String.annotate({ description: "ES256 in base64url, by the key of `GET /api/audit/head`." }),
  }).annotate({
    description: "The signed head of the audit log, sent once a day so that it can be stored elsewhere.",
  }),
  "account.deletion_started": Nothing.annotate({
    description: "Deletion of the account was confirmed. No credential works any more.",
  }),
} as const

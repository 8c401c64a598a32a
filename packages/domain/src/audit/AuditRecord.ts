/**
 * A record of the audit log: who did what, on which resource, from where, and with what result. It never contains
 * values, bodies, subjects or tokens; the name of a secret is not confidential.
 */
import { Schema } from "effect"
import { AuditId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"

/**
 * `secret`: a secret was revealed; the record is committed before the secret is decrypted. `change`: a call that
 * changes data passed its policy check or was rejected by it. `auth`: a credential was used to sign in, was rejected,
 * or ended.
 */
export const AuditClass = Schema.Literals(["secret", "change", "auth"])
export type AuditClass = typeof AuditClass.Type

/** `repeated`: the request was a retry, so its stored response was returned and nothing was done. */
export const AuditOutcome = Schema.Literals(["allowed", "refused", "failed", "repeated"])
export type AuditOutcome = typeof AuditOutcome.Type

/** The interface that received the request. */
export const AuditVia = Schema.Literals(["rest", "mcp", "console", "imap", "smtp", "tunnel", "page"])
export type AuditVia = typeof AuditVia.Type

/**
 * `imap_password`: the password that mail programs of an Identity use. `nobody`: no valid credential of this service.
 */
export const AuditActorKind = Schema.Literals([
  "session",
  "admin_key",
  "identity_key",
  "grant",
  "imap_password",
  "nobody",
])
export type AuditActorKind = typeof AuditActorKind.Type

export const AuditActor = Schema.Struct({
  kind: AuditActorKind.annotate({ description: "Kind of credential." }),
  id: Schema.NullOr(Schema.String).annotate({ description: "The id of the session, the key or the grant." }),
  name: Schema.NullOr(Schema.String).annotate({ description: "The key's name." }),
  client: Schema.NullOr(Schema.String).annotate({ description: "The app that the grant belongs to." }),
}).annotate({ identifier: "AuditActor" })
export type AuditActor = typeof AuditActor.Type

export const AuditTarget = Schema.Struct({
  type: Schema.String.annotate({ description: "Kind of resource." }),
  id: Schema.NullOr(Schema.String).annotate({ description: "Id of the resource, if it has one." }),
  name: Schema.NullOr(Schema.String).annotate({ description: "Name of the resource, if it has one." }),
}).annotate({ identifier: "AuditTarget" })
export type AuditTarget = typeof AuditTarget.Type

export const AuditSource = Schema.Struct({
  address: Schema.NullOr(Schema.String).annotate({
    description: "The client's address or network, or null, depending on the operator's settings.",
  }),
  via: AuditVia.annotate({ description: "Interface that received the request." }),
  tool: Schema.NullOr(Schema.String).annotate({ description: "The tool of an MCP call." }),
  user_agent: Schema.NullOr(Schema.String).annotate({ description: "The client's own name." }),
}).annotate({ identifier: "AuditSource" })
export type AuditSource = typeof AuditSource.Type

/** The record's position in the Org's hash chain; null until the record is sealed, some seconds after its commit. */
const AuditSeal = Schema.Struct({
  seq: Schema.Int.annotate({ description: "The record's number in the chain, from 1." }),
  hash: Schema.String.annotate({ description: "SHA-256 of the previous hash and the record, in hex." }),
}).annotate({ identifier: "AuditSeal" })

export const AuditRecord = Schema.Struct({
  id: AuditId.annotate({ description: "The id of the record." }),
  at: Timestamp.annotate({ description: "Time of the operation." }),
  class: AuditClass.annotate({
    description:
      "`secret`: a secret was revealed or created; `change`: an operation that changes data; `auth`: a sign-in, a rejected credential, or the end of a credential.",
  }),
  action: Schema.String.annotate({
    description: "The operation: group and name of the endpoint, as in `vault.value`.",
  }),
  actor: AuditActor.annotate({ description: "Owner of the credential." }),
  identity: Schema.NullOr(Schema.String).annotate({
    description: "The Handle of the Identity that the record is about, even if the Identity was deleted.",
  }),
  target: Schema.NullOr(AuditTarget).annotate({ description: "Resource that the operation affected." }),
  outcome: AuditOutcome.annotate({
    description:
      "Result of the operation. `repeated`: the request was a retry, so its stored response was returned and nothing was done.",
  }),
  code: Schema.NullOr(Schema.String).annotate({
    description: "Code of the problem, if the operation was rejected or failed.",
  }),
  scope: Schema.NullOr(Schema.String).annotate({ description: "The scope that the operation requires." }),
  source: AuditSource.annotate({ description: "Origin of the request." }),
  request_id: Schema.NullOr(Schema.String).annotate({ description: "The id of the request." }),
  count: Schema.Int.annotate({
    description:
      "Number of occurrences. Rejections of one credential for one reason are counted together for a minute, as are its retries and its Tunnel links.",
  }),
  sealed: Schema.NullOr(AuditSeal).annotate({
    description: "Position in the hash chain; null for the first seconds.",
  }),
}).annotate({ identifier: "AuditRecord" })
export type AuditRecord = typeof AuditRecord.Type

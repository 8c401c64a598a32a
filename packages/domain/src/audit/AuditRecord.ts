/**
 * What the audit log says of one act: who did what, to what, from where, and what came of it. Never a value, a body, a
 * subject or a token; the name of a secret is no secret.
 */
import { Schema } from "effect"
import { AuditId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"

/**
 * `secret`: somebody was shown a secret; the record is committed before it is opened. `change`: a call that changes
 * something reached its judgement. `auth`: a credential was used to come in, was refused, or ended.
 */
export const AuditClass = Schema.Literals(["secret", "change", "auth"])
export type AuditClass = typeof AuditClass.Type

export const AuditOutcome = Schema.Literals(["allowed", "refused", "failed"])
export type AuditOutcome = typeof AuditOutcome.Type

/** By which way in. */
export const AuditVia = Schema.Literals(["rest", "mcp", "console", "imap", "page"])
export type AuditVia = typeof AuditVia.Type

/** `imap_password`: what an Identity's mail program uses. `nobody`: no credential of ours, or one that is none. */
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
  kind: AuditActorKind,
  /** Of the session, the key or the Grant. */
  id: Schema.NullOr(Schema.String),
  /** The key's name. */
  name: Schema.NullOr(Schema.String),
  /** The app that a Grant was given to. */
  client: Schema.NullOr(Schema.String),
}).annotate({ identifier: "AuditActor" })
export type AuditActor = typeof AuditActor.Type

export const AuditTarget = Schema.Struct({
  type: Schema.String,
  id: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
}).annotate({ identifier: "AuditTarget" })
export type AuditTarget = typeof AuditTarget.Type

export const AuditSource = Schema.Struct({
  /** The client's address, or its network, or null, as the operator set it. */
  address: Schema.NullOr(Schema.String),
  via: AuditVia,
  /** The tool that was called, over MCP. */
  tool: Schema.NullOr(Schema.String),
  user_agent: Schema.NullOr(Schema.String),
}).annotate({ identifier: "AuditSource" })
export type AuditSource = typeof AuditSource.Type

/** Its place in the Org's chain of hashes; null until it is sealed, some seconds after its commit. */
export const AuditSeal = Schema.Struct({
  seq: Schema.Int,
  /** SHA-256 in hex. */
  hash: Schema.String,
}).annotate({ identifier: "AuditSeal" })

export const AuditRecord = Schema.Struct({
  id: AuditId,
  at: Timestamp,
  class: AuditClass,
  /** `vault.value`: the group and the name of the endpoint. */
  action: Schema.String,
  actor: AuditActor,
  /** The Handle of the Identity it was about; it stays when the Identity goes. */
  identity: Schema.NullOr(Schema.String),
  target: Schema.NullOr(AuditTarget),
  outcome: AuditOutcome,
  /** Of the problem, where it was refused or failed. */
  code: Schema.NullOr(Schema.String),
  /** The scope that the act needs. */
  scope: Schema.NullOr(Schema.String),
  source: AuditSource,
  request_id: Schema.NullOr(Schema.String),
  /** How often: refusals of one credential for one reason are one record a minute. */
  count: Schema.Int,
  sealed: Schema.NullOr(AuditSeal),
}).annotate({ identifier: "AuditRecord" })
export type AuditRecord = typeof AuditRecord.Type

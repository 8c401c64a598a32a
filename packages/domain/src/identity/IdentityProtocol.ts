/**
 * The messages of the Identity actor, whose entity id is the canonical Handle. Each write names the id of what it
 * makes (or is idempotent by nature), so that a message delivered twice is done once (at-least-once delivery).
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc, RpcGroup } from "effect/rpc"
import { Uuid } from "../account/Account.ts"
import { Attachment, Header, Address, OriginVerdict } from "../mail/Message.ts"
import {
  AccountDeleting,
  Conflict,
  HandleTaken,
  IdentityBusy,
  IdentityNotReady,
  IdentityQuotaExhausted,
  NotFound,
  Unavailable,
  WebhookMismatch,
} from "../problems/Problem.ts"

/** The actor that got the message no longer owns the Identity; the asker sends it again to the present owner. */
export class Moved extends Schema.TaggedError<Moved>()("Moved", {}) {}

/** The Mailbox does not take this message now or ever. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", {
  reason: Schema.Literals(["full", "gone", "not_yet"]),
}) {}

const failures = <const E extends ReadonlyArray<Schema.Top>>(...own: E) => Schema.Union([...own, Moved, Unavailable])

const tenant = { org_id: Uuid }

/** A message's bodies; absent from a `ReceiveMail` whose gateway stored them beforehand because they are large. */
export const Content = Schema.Struct({
  raw: Schema.Uint8Array,
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  headers: Schema.Array(Header),
  search_text: Schema.String,
})
export type Content = typeof Content.Type

export const ReceivedMail = Schema.Struct({
  message_id: Uuid,
  envelope_from: Schema.String,
  recipient: Schema.String,
  tag: Schema.NullOr(Schema.String),
  /** SHA-256 of DATA as received: with the envelope sender it recognises a repeat of the same transaction. */
  sha256: Schema.Uint8Array,
  size: Schema.Int,
  received_at: Schema.Date,
  origin: OriginVerdict,
  from: Schema.NullOr(Address),
  to: Schema.Array(Address),
  cc: Schema.Array(Address),
  bcc: Schema.Array(Address),
  reply_to: Schema.Array(Address),
  subject: Schema.String,
  snippet: Schema.String,
  message_id_header: Schema.NullOr(Schema.String),
  in_reply_to: Schema.NullOr(Schema.String),
  references: Schema.Array(Schema.String),
  attachments: Schema.Array(Attachment),
  content: Schema.NullOr(Content),
})
export type ReceivedMail = typeof ReceivedMail.Type

export const Create = Rpc.make("Create", {
  payload: { ...tenant, identity_id: Uuid, handle: Schema.String },
  error: failures(HandleTaken, IdentityQuotaExhausted, AccountDeleting),
})
export const Retry = Rpc.make("Retry", { payload: tenant, error: failures(NotFound) })
export const Delete = Rpc.make("Delete", { payload: tenant, error: failures(NotFound, IdentityBusy) })
export const Acknowledge = Rpc.make("Acknowledge", { payload: tenant, error: failures(NotFound) })
export const ReceiveMail = Rpc.make("ReceiveMail", { payload: ReceivedMail, error: failures(MailRefused) })
export const RefuseMail = Rpc.make("RefuseMail", {
  payload: { reason: Schema.Literals(["size", "full"]), from: Schema.String },
  error: failures(),
})
export const RegisterWebhook = Rpc.make("RegisterWebhook", {
  payload: {
    ...tenant,
    webhook_id: Uuid,
    url: Schema.String,
    event_types: Schema.Array(Schema.String),
    description: Schema.NullOr(Schema.String),
  },
  success: Schema.Struct({ signing_secret: Schema.String, created_at: Schema.Date }),
  error: failures(NotFound, IdentityNotReady),
})
export const Replay = Rpc.make("Replay", {
  payload: { ...tenant, delivery_id: Uuid, event_id: Uuid, webhook_id: Uuid },
  error: failures(NotFound, Conflict, WebhookMismatch),
})
/** Drives what is due: saga steps and deliveries. Sent by the actor to itself and by `Overdue`; lasts while there is work. */
export const Work = Rpc.make("Work", { error: failures() }).annotate(ClusterSchema.InterruptOnTermination, true)

export const IdentityActor = Entity.fromRpcGroup(
  "Identity",
  RpcGroup.make(Create, Retry, Delete, Acknowledge, ReceiveMail, RefuseMail, RegisterWebhook, Replay)
    // A write's handler runs to its end even when its caller has gone, so that memory and store stay one.
    .annotateRpcs(ClusterSchema.Uninterruptible, "server")
    .add(Work)
    .annotateRpcs(ClusterSchema.ClientTracingEnabled, false),
)

/**
 * The messages of the Identity actor, whose entity id is the canonical Handle. Each write names the id of what it
 * makes (or is idempotent by nature), so that a message delivered twice is done once (at-least-once delivery).
 */
import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc, RpcGroup } from "effect/rpc"
import { CredentialKind, Uuid } from "../account/Account.ts"
import { Moved } from "../actor/Moved.ts"
import { CardPatch } from "../card/Card.ts"
import { MailPatch } from "../mail/MailSettings.ts"
import { Attachment, Header, Address, OriginVerdict } from "../mail/Message.ts"
import { IfVersion } from "../Precondition.ts"
import {
  AccountDeleting,
  Conflict,
  HandleTaken,
  IdentityBusy,
  IdentityNotReady,
  IdentityQuotaExhausted,
  NotFound,
  PreconditionFailed,
  Unavailable,
  WebhookMismatch,
} from "../problems/Problem.ts"
import { TunnelPatch } from "../tunnel/Tunnel.ts"
import { WebhookPatch } from "../webhooks/Webhook.ts"

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
export const Delete = Rpc.make("Delete", {
  /** `account`: the whole account goes, so a running provisioning gives way at its next step. */
  payload: { ...tenant, account: Schema.optionalKey(Schema.Boolean) },
  error: failures(NotFound, IdentityBusy),
})
/** Revokes the present Identity Key and IMAP password and puts new ones into the show-once place. */
export const RotateKey = Rpc.make("RotateKey", { payload: tenant, error: failures(NotFound, IdentityNotReady) })
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
export const PatchWebhook = Rpc.make("PatchWebhook", {
  payload: { ...tenant, webhook_id: Uuid, patch: WebhookPatch, if_version: IfVersion },
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})
export const RemoveWebhook = Rpc.make("RemoveWebhook", {
  payload: { ...tenant, webhook_id: Uuid },
  error: failures(NotFound),
})
export const TestWebhook = Rpc.make("TestWebhook", {
  payload: { ...tenant, webhook_id: Uuid, delivery_id: Uuid, event_id: Uuid },
  error: failures(NotFound, IdentityNotReady, Conflict),
})
export const RotateSecret = Rpc.make("RotateSecret", {
  payload: { ...tenant, secret_id: Uuid },
  success: Schema.Struct({ signing_secret: Schema.String, previous_valid_until: Schema.NullOr(Schema.Date) }),
  error: failures(NotFound, IdentityNotReady),
})
export const PatchCard = Rpc.make("PatchCard", {
  payload: { ...tenant, patch: CardPatch, if_version: IfVersion },
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})
export const AllowRecipient = Rpc.make("AllowRecipient", {
  payload: { ...tenant, address: Schema.String },
  error: failures(NotFound, IdentityNotReady),
})
export const DisallowRecipient = Rpc.make("DisallowRecipient", {
  payload: { ...tenant, address: Schema.String },
  error: failures(NotFound, IdentityNotReady),
})
/** `text` null goes back to the default. */
export const SetDisclosure = Rpc.make("SetDisclosure", {
  payload: { ...tenant, text: Schema.NullOr(Schema.String), if_version: IfVersion },
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})
export const SwitchMail = Rpc.make("SwitchMail", {
  payload: { ...tenant, patch: MailPatch, by: CredentialKind, if_version: IfVersion },
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})
export const RemoveMessage = Rpc.make("RemoveMessage", {
  payload: { ...tenant, message_id: Uuid },
  error: failures(NotFound),
})
/** The Identity's links changed: whether it is connected is looked up, and a change raises its Event. */
export const PatchTunnel = Rpc.make("PatchTunnel", {
  payload: { ...tenant, patch: TunnelPatch },
  error: failures(NotFound, IdentityNotReady),
})
/** A link came or went. */
export const TunnelChanged = Rpc.make("TunnelChanged", { error: failures() })
/** Drives what is due: saga steps and deliveries. Sent by the actor to itself and by `Overdue`; lasts while there is work. */
export const Work = Rpc.make("Work", { error: failures() }).annotate(ClusterSchema.InterruptOnTermination, true)

export const IdentityActor = Entity.fromRpcGroup(
  "Identity",
  RpcGroup.make(
    Create,
    Retry,
    Delete,
    Acknowledge,
    RotateKey,
    ReceiveMail,
    RefuseMail,
    RemoveMessage,
    AllowRecipient,
    DisallowRecipient,
    SetDisclosure,
    SwitchMail,
    PatchCard,
    RegisterWebhook,
    PatchWebhook,
    RemoveWebhook,
    TestWebhook,
    RotateSecret,
    Replay,
    PatchTunnel,
    TunnelChanged,
  )
    // A write's handler runs to its end even when its caller has gone, so that memory and store stay one.
    .annotateRpcs(ClusterSchema.Uninterruptible, "server")
    .add(Work)
    .annotateRpcs(ClusterSchema.ClientTracingEnabled, false),
)

import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { failures, tenant } from "../actor/Protocol.ts"
import { Uuid } from "../IdSchemas.ts"
import { IfVersion } from "../Precondition.ts"
import { Conflict, IdentityNotReady, NotFound, PreconditionFailed, WebhookMismatch } from "../problems/Problem.ts"
import { WebhookPatch } from "./Webhook.ts"

const RegisterWebhook = Rpc.make("RegisterWebhook", {
  payload: {
    ...tenant,
    webhook_id: Uuid,
    url: Schema.String,
    event_types: Schema.Array(Schema.String),
    description: Schema.NullOr(Schema.String),
  },
  success: Schema.Struct({ signing_secret: Schema.String, created_at: Schema.Date }),
  error: failures(NotFound, IdentityNotReady, Conflict),
})

const PatchWebhook = Rpc.make("PatchWebhook", {
  payload: { ...tenant, webhook_id: Uuid, patch: WebhookPatch, if_version: IfVersion },
  error: failures(NotFound, IdentityNotReady, PreconditionFailed),
})

const RemoveWebhook = Rpc.make("RemoveWebhook", {
  payload: { ...tenant, webhook_id: Uuid, if_version: Schema.optionalKey(IfVersion) },
  error: failures(NotFound, PreconditionFailed),
})

const TestWebhook = Rpc.make("TestWebhook", {
  payload: { ...tenant, webhook_id: Uuid, delivery_id: Uuid, event_id: Uuid },
  error: failures(NotFound, IdentityNotReady, Conflict),
})

const RotateSecret = Rpc.make("RotateSecret", {
  payload: { ...tenant, secret_id: Uuid },
  success: Schema.Struct({ signing_secret: Schema.String, previous_valid_until: Schema.NullOr(Schema.Date) }),
  error: failures(NotFound, IdentityNotReady),
})

/** Queues another delivery of an Event. */
const Replay = Rpc.make("Replay", {
  payload: { ...tenant, delivery_id: Uuid, event_id: Uuid, webhook_id: Uuid },
  error: failures(NotFound, Conflict, WebhookMismatch),
})

/** Queues another delivery of every Event whose delivery failed since the given time. */
const Recover = Rpc.make("Recover", {
  payload: { ...tenant, webhook_id: Uuid, since: Schema.Date },
  success: Schema.Struct({ queued: Schema.Int }),
  error: failures(NotFound, IdentityNotReady, Conflict),
})

export const WebhookMessages = RpcGroup.make(
  RegisterWebhook,
  PatchWebhook,
  RemoveWebhook,
  TestWebhook,
  RotateSecret,
  Replay,
  Recover,
)

/** The messages of the Identity actor, collected from all capabilities. Its entity id is the canonical Handle. */
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc, RpcGroup } from "effect/rpc"
import { Schema } from "effect"
import { failures, tenant } from "./actor/Protocol.ts"
import { CardMessages } from "./card/CardProtocol.ts"
import { FolderMessages } from "./mail/FolderProtocol.ts"
import { MailboxMessages } from "./mail/MailboxProtocol.ts"
import { MailSettingsMessages } from "./mail/MailSettingsProtocol.ts"
import { SendingMessages } from "./mail/SendingProtocol.ts"
import { ProofMessages } from "./proof/ProofProtocol.ts"
import { TunnelMessages } from "./tunnel/TunnelProtocol.ts"
import { WebhookMessages } from "./webhooks/WebhookProtocol.ts"
import { Uuid } from "./IdSchemas.ts"
import {
  AccountDeleting,
  HandleTaken,
  IdentityBusy,
  IdentityNotReady,
  IdentityQuotaExhausted,
  NotFound,
} from "./problems/Problem.ts"

/** Runs due work. The actor and the `Overdue` sweep send it; it runs until no work is left. */
const Work = Rpc.make("Work", { error: failures() }).annotate(ClusterSchema.InterruptOnTermination, true)

/** Messages for the life cycle of an Identity and its initial credentials. */
const Create = Rpc.make("Create", {
  payload: { ...tenant, identity_id: Uuid, handle: Schema.String },
  error: failures(HandleTaken, IdentityQuotaExhausted, AccountDeleting),
})

const Retry = Rpc.make("Retry", { payload: tenant, error: failures(NotFound) })

const Delete = Rpc.make("Delete", {
  /** `account` means that the whole account is deleted, so provisioning stops after its current step. */
  payload: { ...tenant, account: Schema.optionalKey(Schema.Boolean) },
  error: failures(NotFound, IdentityBusy),
})

/** Deletes the show-once secrets. */
const Acknowledge = Rpc.make("Acknowledge", { payload: tenant, error: failures(NotFound) })

/** Revokes the current Identity Key and IMAP password and stores new ones as show-once secrets. */
const RotateKey = Rpc.make("RotateKey", { payload: tenant, error: failures(NotFound, IdentityNotReady) })

const LifecycleMessages = RpcGroup.make(Create, Retry, Delete, Acknowledge, RotateKey)

export const IdentityActor = Entity.fromRpcGroup(
  "Identity",
  LifecycleMessages.merge(
    CardMessages,
    FolderMessages,
    MailboxMessages,
    MailSettingsMessages,
    ProofMessages,
    SendingMessages,
    TunnelMessages,
    WebhookMessages,
  )
    // A write completes even if its caller disconnects, so that memory and store stay consistent.
    .annotateRpcs(ClusterSchema.Uninterruptible, "server")
    .add(Work),
)

/** The messages of the Identity actor, collected from all capabilities. Its entity id is the canonical Handle. */
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { failures } from "./actor/Protocol.ts"
import { CardMessages } from "./card/CardProtocol.ts"
import { FolderMessages } from "./mail/FolderProtocol.ts"
import { MailboxMessages } from "./mail/MailboxProtocol.ts"
import { MailSettingsMessages } from "./mail/MailSettingsProtocol.ts"
import { SendingMessages } from "./mail/SendingProtocol.ts"
import { TunnelMessages } from "./tunnel/TunnelProtocol.ts"
import { WebhookMessages } from "./webhooks/WebhookProtocol.ts"
import { LifecycleMessages } from "./identity/LifecycleProtocol.ts"

/** Runs due work. The actor and the `Overdue` sweep send it; it runs until no work is left. */
export const Work = Rpc.make("Work", { error: failures() }).annotate(ClusterSchema.InterruptOnTermination, true)

export const IdentityActor = Entity.fromRpcGroup(
  "Identity",
  LifecycleMessages.merge(
    CardMessages,
    FolderMessages,
    MailboxMessages,
    MailSettingsMessages,
    SendingMessages,
    TunnelMessages,
    WebhookMessages,
  )
    // A write completes even if its caller disconnects, so that memory and store stay consistent.
    .annotateRpcs(ClusterSchema.Uninterruptible, "server")
    .add(Work),
)

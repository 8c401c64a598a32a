/** The Identity actor's messages: the sum of what each capability asks of it. Its entity id is the canonical Handle. */
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

/** Drives what is due between messages. Sent by the actor to itself and by `Overdue`; lasts while there is work. */
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
    // A write's handler runs to its end even when its caller has gone, so that memory and store stay one.
    .annotateRpcs(ClusterSchema.Uninterruptible, "server")
    .add(Work),
)

/**
 * The Identity actor: the one writer of everything an Identity owns. Its entity id is the canonical Handle. Writes run
 * one at a time, each one commit; what outlives a call is rows, driven by the sources of {@link IdentityWork}. What it
 * does for each message stands in the folder of the message's capability.
 */
import { IdentityActor } from "@svc/domain/IdentityActor"
import { Effect, Layer } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import * as Handling from "../actor/Handling.ts"
import * as Ownership from "../actor/Ownership.ts"
import * as Cards from "../card/Cards.ts"
import * as IdentityKeys from "../credentials/IdentityKeys.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Arrivals from "../mail/Arrivals.ts"
import * as Folders from "../mail/folders/Folders.ts"
import * as Mailbox from "../mail/Mailbox.ts"
import * as MailSettings from "../mail/MailSettings.ts"
import * as Approvals from "../mail/sending/Approvals.ts"
import * as Bounces from "../mail/sending/Bounces.ts"
import * as Outgoing from "../mail/sending/Outgoing.ts"
import { SendingGate } from "../mail/sending/SendingGate.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { Timing } from "../Timing.ts"
import type { PortRange } from "../tunnel/TunnelPorts.ts"
import * as Tunnels from "../tunnel/Tunnels.ts"
import * as Webhooks from "../webhooks/Webhooks.ts"
import * as Worker from "../work/Worker.ts"
import { sources } from "./IdentityWork.ts"
import * as Lifecycle from "./Lifecycle.ts"
import { load, type State } from "./State.ts"

/** Limits of the deployment (decisions.md "Limits"). */
export interface IdentityLimits {
  /** Identities an Org may ever create. */
  readonly identityQuota: number
  /** Bytes a Mailbox holds. */
  readonly mailboxBytes: number
  /** Messages an Identity may send in any hour. */
  readonly mailHourly: number
  /** The TCP ports that Tunnels are allotted from. */
  readonly tunnelPorts: PortRange
}

export const layer = (limits: IdentityLimits) =>
  IdentityActor.toLayer(
    Effect.gen(function* () {
      const canonical = (yield* Entity.CurrentAddress).entityId as string
      const sealing = yield* Sealing
      const feed = yield* ChangeFeed
      const gate = yield* SendingGate
      const arrivals = yield* Arrivals.Arrivals
      const loadState = yield* load
      const clientFor = yield* IdentityActor.client
      const ownership: Ownership.Ownership<State> = yield* Ownership.make({
        kind: "Identity",
        id: canonical,
        load: loadState(canonical),
        due: () => Effect.runFork(worker.wake),
        committed: (before, after) => {
          const about = after ?? before
          if (about !== undefined) feed.announce({ org: about.orgId, identity: about.id })
        },
      })
      const worker: Worker.Worker = yield* Worker.make({
        state: ownership.state,
        sources: yield* Effect.forEach(sources, (source) => source.make(ownership)),
        start: Effect.asVoid(clientFor(canonical).Work(undefined, { discard: true })),
      })
      const handling = Handling.make(ownership)

      return IdentityActor.of({
        ...Lifecycle.handlers({
          canonical,
          ownership,
          sealing,
          identityQuota: limits.identityQuota,
          wake: worker.wake,
        }),
        ...IdentityKeys.handlers(handling, sealing),
        ...(yield* Cards.handlers(handling)),
        ...(yield* Mailbox.handlers(handling, limits, arrivals)),
        ...Folders.handlers(handling, limits),
        ...MailSettings.handlers(handling, gate),
        ...Outgoing.handlers(handling, limits),
        ...Approvals.handlers(handling),
        ...Bounces.handlers(handling),
        ...Tunnels.handlers(handling, sealing, limits),
        ...Webhooks.handlers(handling, sealing),
        Work: () => Rpc.fork(worker.run),
      })
    }),
    { maxIdleTime: Timing.actorIdle, disableFatalDefects: true },
  ).pipe(Layer.provide(Arrivals.layer))

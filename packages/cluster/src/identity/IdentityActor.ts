/**
 * The Identity actor: the one writer of everything an Identity owns. Its entity id is the canonical Handle. Writes run
 * one at a time, each one commit; what outlives a call is rows, driven by the sources of {@link IdentityWork}. What it
 * does for each message stands in the folder of the message's capability.
 */
import { IdentityActor } from "@svc/domain/IdentityActor"
import { Context, Effect, Layer } from "effect"
import { Sharding } from "effect/cluster"
import { Rpc } from "effect/rpc"
import * as ActorHandlers from "../actor/ActorHandlers.ts"
import * as Ownership from "../actor/Ownership.ts"
import * as ActorInstances from "../actor/ActorInstances.ts"
import { apart } from "../actor/MessageContext.ts"
import * as Cards from "../card/Cards.ts"
import * as IdentityKeys from "../credentials/IdentityKeys.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as InboundBatch from "../mail/InboundBatch.ts"
import * as Folders from "../mail/folders/Folders.ts"
import * as Mailbox from "../mail/Mailbox.ts"
import * as MailSettings from "../mail/MailSettings.ts"
import * as Approvals from "../mail/sending/Approvals.ts"
import * as Bounces from "../mail/sending/Bounces.ts"
import * as OutboundBatch from "../mail/sending/OutboundBatch.ts"
import * as SendHandlers from "../mail/sending/SendHandlers.ts"
import { SendingGate } from "../mail/sending/SendingGate.ts"
import { Sealing } from "../sealing/Sealing.ts"
import type { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { PortRange } from "../tunnel/TunnelPorts.ts"
import * as Tunnels from "../tunnel/Tunnels.ts"
import * as Webhooks from "../webhooks/Webhooks.ts"
import type { NeedsOf } from "../work/Source.ts"
import * as Worker from "../work/Worker.ts"
import * as CreationBatch from "./CreationBatch.ts"
import { sources } from "./IdentityWork.ts"
import * as Lifecycle from "./Lifecycle.ts"
import * as ProvisioningBatch from "./ProvisioningBatch.ts"
import { claim, type State } from "./State.ts"

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

type Needs = NeedsOf<(typeof sources)[number]> | Writes

/** What drives an actor's work: made with the first of it. */
const workerOf = (start: (canonical: string) => Effect.Effect<void, unknown>) => ({
  make: Effect.fnUntraced(function* ({ id, ownership }: ActorInstances.ActorInstance<State>) {
    return yield* Worker.make({
      state: ownership.state,
      sources: yield* Effect.forEach(sources, (source) => source.make(ownership)),
      start: start(id),
    })
  }),
})

export const layer = (limits: IdentityLimits) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const sealing = yield* Sealing
      const feed = yield* ChangeFeed
      const gate = yield* SendingGate
      const arrivals = yield* InboundBatch.InboundBatch
      const departures = yield* OutboundBatch.OutboundBatch
      const creations = yield* CreationBatch.CreationBatch
      const claimed = yield* claim
      const clientFor = yield* IdentityActor.client
      const residents = ActorInstances.make<State, Needs>(yield* Effect.context<Needs>())
      const worker = workerOf((canonical) => Effect.asVoid(clientFor(canonical).Work(undefined, { discard: true })))
      const committed = (before: State, after: State) => {
        const about = after ?? before
        if (about !== undefined) feed.announce({ org: about.orgId, identity: about.id })
      }
      const handling = ActorHandlers.make(residents.ownership, residents.part)
      const handlers = IdentityActor.of({
        ...Lifecycle.handlers({
          canonical: Effect.map(residents.present, ({ id }) => id),
          ownership: residents.ownership,
          sealing,
          identityQuota: limits.identityQuota,
          creations,
          wake: Effect.flatMap(residents.part(worker), ({ wake }) => wake),
        }),
        ...IdentityKeys.handlers(handling, sealing),
        ...Cards.handlers(handling),
        ...Mailbox.handlers(handling, limits, arrivals),
        ...Folders.handlers(handling, limits),
        ...MailSettings.handlers(handling, gate),
        ...SendHandlers.handlers(handling, limits, departures),
        ...Approvals.handlers(handling),
        ...Bounces.handlers(handling),
        ...Tunnels.handlers(handling, sealing, limits),
        ...Webhooks.handlers(handling, sealing),
        Work: () => Rpc.fork(Effect.flatMap(residents.part(worker), ({ run }) => run)),
      })

      const served = residents.serving(handlers)
      const actors = IdentityActor.toLayer(
        Effect.gen(function* () {
          const resident = yield* residents.enter((canonical) =>
            Ownership.make({
              kind: "Identity",
              id: canonical,
              load: { claimed: claimed(canonical) },
              due: () => Effect.runFork(Effect.flatMap(residents.partOf(resident, worker), ({ wake }) => wake)),
              committed,
            }),
          )
          return served
        }),
        { maxIdleTime: Timing.actorIdle, disableFatalDefects: true },
      )
      return apart(actors, Context.pick(Sharding.Sharding))
    }),
  ).pipe(
    Layer.provide([
      InboundBatch.layer,
      CreationBatch.layer,
      OutboundBatch.layer,
      ProvisioningBatch.layer,
      Approvals.Lapses.layer,
    ]),
  )

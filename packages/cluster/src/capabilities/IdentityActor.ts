/**
 * The Identity actor: the only writer of everything an Identity owns. Its entity id is the canonical Handle. Writes run
 * one at a time, each in one commit. Work that outlives a call is stored in rows, which the sources of the capabilities
 * drive. The handlers of a message are in the folder of its capability.
 */
import { IdentityActor } from "@svc/domain/IdentityActor"
import { Context, Effect, Layer } from "effect"
import { Sharding } from "effect/cluster"
import { Rpc } from "effect/rpc"
import * as AuditWrite from "../audit/AuditWrite.ts"
import * as ActorHandlers from "../actor/ActorHandlers.ts"
import * as Ownership from "../actor/Ownership.ts"
import * as ActorInstances from "../actor/ActorInstances.ts"
import { ask } from "../actor/Ask.ts"
import { apart } from "../actor/MessageContext.ts"
import type { IdentityLimits } from "../Capability.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as CreationBatch from "../identity/CreationBatch.ts"
import { Identities } from "../actor/Identities.ts"
import * as Lifecycle from "../identity/Lifecycle.ts"
import * as ProvisioningBatch from "../identity/ProvisioningBatch.ts"
import { claim, type Owned, type State } from "../identity/State.ts"
import { NextClaim } from "../mail/AgentClaims.ts"
import * as InboundBatch from "../mail/InboundBatch.ts"
import * as Approvals from "../mail/sending/Approvals.ts"
import * as OutboundBatch from "../mail/sending/OutboundBatch.ts"
import { DidDocuments } from "../proof/DidDocuments.ts"
import { Sealing } from "../sealing/Sealing.ts"
import type { Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { NeedsOf, Source } from "../work/Source.ts"
import * as Worker from "../work/Worker.ts"
import { batchedErasure, handlers, identityWork } from "./Capabilities.ts"

/** The work sources of the actor. */
export const sources: ReadonlyArray<
  Source<Owned, NeedsOf<(typeof identityWork)[number]>, Ownership.Ownership<Owned | undefined>>
> = identityWork

/** How `Overdue` finds and wakes the Identity's work. */
export const watched = {
  kind: "Identity",
  sources,
  wake: Effect.map(
    Effect.service(Identities),
    (identities) => (canonical: string) =>
      Effect.ignore(ask(identities.of(canonical).Work(undefined, { discard: true }))),
  ),
}

type Needs = NeedsOf<(typeof sources)[number]> | Writes

/** The worker of an actor, created when it first has work. */
const workerOf = (start: (canonical: string) => Effect.Effect<void, unknown>) => ({
  make: Effect.fnUntraced(function* ({ id, ownership }: ActorInstances.ActorInstance<State>) {
    return yield* Worker.make({
      state: ownership.state,
      sources: yield* Effect.forEach(sources, (source) => source.make(ownership)),
      names: sources.map(({ name }) => name),
      start: start(id),
    })
  }),
})

export const layer = (limits: IdentityLimits) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const sealing = yield* Sealing
      const feed = yield* ChangeFeed
      const creations = yield* CreationBatch.CreationBatch
      const claimed = yield* claim
      const clientFor = yield* IdentityActor.client
      const residents = ActorInstances.make<State, Needs>(yield* Effect.context<Needs>())
      const worker = workerOf((canonical) => Effect.asVoid(clientFor(canonical).Work(undefined, { discard: true })))
      const committed = (before: State, after: State) => {
        const about = after ?? before
        if (about !== undefined) feed.announce({ org: about.orgId, identity: about.id })
      }
      const handling = ActorHandlers.make(residents.ownership, residents.part, AuditWrite.insertNotes)
      const served = residents.serving(
        IdentityActor.of({
          ...Lifecycle.handlers({
            canonical: Effect.map(residents.present, ({ id }) => id),
            ownership: residents.ownership,
            sealing,
            identityQuota: limits.identityQuota,
            creations,
            wake: Effect.flatMap(residents.part(worker), ({ wake }) => wake),
          }),
          ...(yield* handlers({ handling, limits })),
          Work: () => Rpc.fork(Effect.flatMap(residents.part(worker), ({ run }) => run)),
        }),
      )
      const actors = IdentityActor.toLayer(
        Effect.gen(function* () {
          const resident = yield* residents.enter((canonical) =>
            Ownership.make({
              kind: "Identity",
              id: canonical,
              load: { claimed: claimed(canonical) },
              due: (source) =>
                Effect.runFork(
                  Effect.flatMap(residents.partOf(resident, worker), ({ wake, wakeFor }) =>
                    source === undefined ? wake : wakeFor(source),
                  ),
                ),
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
      Approvals.ApprovalExpiry.layer,
      NextClaim.layer,
      DidDocuments.layer,
      batchedErasure,
    ]),
  )

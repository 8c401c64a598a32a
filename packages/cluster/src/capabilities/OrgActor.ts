/** The Org actor: the budget of the Org's calls and transfers, its deletion and its exports. Its entity id is the Org's id. */
import { OrgActor } from "@svc/domain/account/OrgProtocol"
import { Clock, Effect, Layer } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import * as AccountDeletion from "../account/AccountDeletion.ts"
import * as CallBudget from "../account/CallBudget.ts"
import * as Exports from "../account/exports/Exports.ts"
import { Orgs } from "../account/Orgs.ts"
import { load, type OrgState, type OwnedOrg } from "../account/OrgState.ts"
import * as TransferBudget from "../account/TransferBudget.ts"
import { byOf } from "../actor/ActorHandlers.ts"
import { ask } from "../actor/Ask.ts"
import * as Ownership from "../actor/Ownership.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import type { NeedsOf, Source } from "../work/Source.ts"
import * as Worker from "../work/Worker.ts"
import { exportContents, orgWork } from "./Capabilities.ts"

export interface OrgQuotas extends CallBudget.Quotas {
  /** Bytes per day through the Org's Tunnels. */
  readonly tunnel_transfer: number
}

/** The work sources of the actor. */
const sources: ReadonlyArray<
  Source<OwnedOrg, NeedsOf<(typeof orgWork)[number]>, Ownership.Ownership<OwnedOrg | undefined>>
> = orgWork

/** How `Overdue` finds and wakes the Org's work. */
export const watched = {
  kind: "Org",
  sources,
  wake: Effect.map(
    Effect.service(Orgs),
    (orgs) => (id: string) => Effect.ignore(ask(orgs.of(id).Work(undefined, { discard: true }))),
  ),
}

export const layer = (quotas: OrgQuotas) =>
  OrgActor.toLayer(
    Effect.gen(function* () {
      const org = (yield* Entity.CurrentAddress).entityId as string
      const loadState = yield* load
      const feed = yield* ChangeFeed
      const clientFor = yield* OrgActor.client
      const budget = CallBudget.make(yield* Writes, org, quotas)
      const transfer = TransferBudget.make(org, quotas.tunnel_transfer)
      const ownership: Ownership.Ownership<OrgState> = yield* Ownership.make({
        kind: "Org",
        id: org,
        load: loadState(org),
        committed: () => feed.announce({ org }),
      })
      const worker = yield* Worker.make({
        state: ownership.state,
        sources: yield* Effect.forEach(sources, (source) => source.make(ownership)),
        start: Effect.asVoid(clientFor(org).Work(undefined, { discard: true })),
      })

      return OrgActor.of({
        Lease: ({ payload }) =>
          orUnavailable(
            Effect.flatMap(Clock.currentTimeMillis, (now) => budget.lease(payload.policy, payload.want, now)),
          ),
        LeaseTransfer: (request) => ownership.write(byOf(request), (write) => transfer.lease(write, request.payload)),
        Delete: (request) => Effect.tap(ownership.change(byOf(request), AccountDeletion.begin), worker.wake),
        Export: (request) =>
          Effect.tap(
            ownership.write(byOf(request), (write) => Exports.begin(write, org, request.payload)),
            worker.wake,
          ),
        Work: () => Rpc.fork(worker.run),
      })
    }),
    { maxIdleTime: Timing.actorIdle, disableFatalDefects: true },
  ).pipe(Layer.provide(exportContents))

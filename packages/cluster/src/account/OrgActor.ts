/** The Org actor: the budget of the Org's calls and transfers, its deletion and its exports. Its entity id is the Org's id. */
import { OrgActor } from "@svc/domain/account/OrgProtocol"
import { Clock, Effect } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { byOf } from "../actor/ActorHandlers.ts"
import * as Ownership from "../actor/Ownership.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as Worker from "../work/Worker.ts"
import * as AccountDeletion from "./AccountDeletion.ts"
import * as CallBudget from "./CallBudget.ts"
import * as Exports from "./exports/Exports.ts"
import { load, type OrgState } from "./OrgState.ts"
import { sources } from "./OrgWork.ts"
import * as TransferBudget from "./TransferBudget.ts"

export interface OrgQuotas extends CallBudget.Quotas {
  /** Bytes a day through the Org's Tunnels. */
  readonly tunnel_transfer: number
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
  )

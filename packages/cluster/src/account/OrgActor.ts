/** The Org actor: the budget of the Org's calls, its deletion and its exports. Its entity id is the Org's id. */
import { OrgActor } from "@svc/domain/account/OrgProtocol"
import { Clock, Effect } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import type { Identities } from "../identity/Identities.ts"
import type { Unhurried, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as AccountDeletion from "./AccountDeletion.ts"
import * as CallBudget from "./CallBudget.ts"
import * as Exports from "./Exports.ts"
import * as TransferBudget from "./TransferBudget.ts"

export interface OrgQuotas extends CallBudget.Quotas {
  /** Bytes a day through the Org's Tunnels. */
  readonly tunnel_transfer: number
}

export const layer = (quotas: OrgQuotas) =>
  OrgActor.toLayer(
    Effect.gen(function* () {
      const org = (yield* Entity.CurrentAddress).entityId as string
      const context = yield* Effect.context<Writes | Unhurried | Identities | Exports.Needs>()
      const budget = CallBudget.make(quotas, yield* Clock.currentTimeMillis)
      const transfer = TransferBudget.make(org, quotas.tunnel_transfer)
      const clientFor = yield* OrgActor.client
      const scope = yield* Effect.scope
      let working = false

      /** Work runs inside a message, so that the actor stays in memory and is drained on shutdown. */
      const wake = Effect.asVoid(Effect.forkIn(Effect.ignore(clientFor(org).Work(undefined, { discard: true })), scope))

      const work = Effect.gen(function* () {
        yield* Exports.runAll(org)
        if (yield* AccountDeletion.isDeleting(org)) yield* AccountDeletion.finish(org)
      }).pipe(Effect.provideContext(context))

      return OrgActor.of({
        Lease: ({ payload }) =>
          Effect.map(Clock.currentTimeMillis, (now) => budget.lease(payload.policy, payload.want, now)),
        LeaseTransfer: ({ payload }) => Effect.provideContext(transfer.lease(payload.edge, payload.used), context),
        Delete: () => AccountDeletion.begin(org).pipe(Effect.provideContext(context), Effect.tap(wake)),
        Export: ({ payload }) =>
          Exports.begin(org, payload).pipe(Effect.provideContext(context), Effect.tap(wake), Effect.asVoid),
        Work: () =>
          Rpc.fork(
            Effect.suspend(() => {
              if (working) return Effect.void
              working = true
              return Effect.ensuring(
                work,
                Effect.sync(() => (working = false)),
              )
            }),
          ),
      })
    }),
    { maxIdleTime: Timing.actorIdle, disableFatalDefects: true },
  )

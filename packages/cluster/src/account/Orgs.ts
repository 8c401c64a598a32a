/** The client of every Org actor in the cluster. Only runners load the actor itself. */
import { OrgActor } from "@svc/domain/account/OrgProtocol"
import { Context, Effect, Layer } from "effect"
import { namedClient } from "../actor/ActorClients.ts"

type Client = Effect.Success<typeof OrgActor.client>

/** `of(orgId)` returns the client of one Org's actor; use `ask` for calls. */
export class Orgs extends Context.Service<Orgs, { readonly of: Client }>()("@svc/cluster/account/Orgs") {
  static readonly layer = Layer.effect(
    Orgs,
    Effect.map(namedClient("Org", OrgActor), (of) => ({ of })),
  )
}

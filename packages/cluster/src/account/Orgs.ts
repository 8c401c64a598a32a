/** The way to any Org's actor, wherever in the cluster it is; the actor itself is loaded by runners only. */
import { OrgActor } from "@svc/domain/account/OrgProtocol"
import { Context, Effect, Layer } from "effect"
import { namedClient } from "../actor/ActorClients.ts"

type Client = Effect.Success<typeof OrgActor.client>

/** `of(orgId)` is the raw client of an Org's actor; calls go through `ask`. */
export class Orgs extends Context.Service<Orgs, { readonly of: Client }>()("@svc/cluster/account/Orgs") {
  static readonly layer = Layer.effect(
    Orgs,
    Effect.map(namedClient("Org", OrgActor), (of) => ({ of })),
  )
}

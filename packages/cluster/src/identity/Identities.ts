/** The way to any Identity's actor, wherever in the cluster it is; the actor itself is loaded by runners only. */
import { IdentityActor } from "@svc/domain/IdentityActor"
import { Context, Effect, Layer } from "effect"
import { namedClient } from "../actor/ActorClients.ts"

type Client = Effect.Success<typeof IdentityActor.client>

/** `of(canonical)` is the raw client of one Identity's actor; calls go through `ask`. */
export class Identities extends Context.Service<Identities, { readonly of: Client }>()(
  "@svc/cluster/identity/Identities",
) {
  static readonly layer = Layer.effect(
    Identities,
    Effect.map(namedClient("Identity", IdentityActor), (of) => ({ of })),
  )
}

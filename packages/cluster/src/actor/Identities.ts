/** The client of every Identity actor in the cluster. Only runners load the actor itself. */
import { IdentityActor } from "@svc/domain/IdentityActor"
import { Context, Effect, Layer } from "effect"
import { namedClient } from "./ActorClients.ts"

type Client = Effect.Success<typeof IdentityActor.client>

/** `of(canonical)` returns the client of one Identity's actor; use `ask` for calls. */
export class Identities extends Context.Service<Identities, { readonly of: Client }>()(
  "@svc/cluster/actor/Identities",
) {
  static readonly layer = Layer.effect(
    Identities,
    Effect.map(namedClient("Identity", IdentityActor), (of) => ({ of })),
  )
}

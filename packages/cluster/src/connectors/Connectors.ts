/** Client of the Connector actors, wherever they run in the cluster. Only runners load the actor itself. */
import { ConnectorActor, entityId } from "@svc/domain/connectors/ConnectorProtocol"
import { Context, Effect, Layer } from "effect"
import { namedClient } from "../actor/ActorClients.ts"

type Client = Effect.Success<typeof ConnectorActor.client>

/** `of(canonical, platform)` returns the raw client of one Connector's actor; use it through `ask`. */
export class Connectors extends Context.Service<
  Connectors,
  { readonly of: (canonical: string, platform: string) => ReturnType<Client> }
>()("@svc/cluster/connectors/Connectors") {
  static readonly layer = Layer.effect(
    Connectors,
    Effect.map(namedClient("Connector", ConnectorActor), (of) => ({
      of: (canonical: string, platform: string) => of(entityId(canonical, platform)),
    })),
  )
}

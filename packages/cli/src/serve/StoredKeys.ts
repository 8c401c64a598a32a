/** Access to keys in the store, for commands that run beside the service. */
import type { Sealing } from "@svc/cluster/sealing/Sealing"
import * as Database from "@svc/cluster/store/Database"
import * as Migrations from "@svc/cluster/store/Migrations"
import { Effect, Layer } from "effect"
import * as MasterKey from "./MasterKey.ts"
import type { Settings } from "./Settings.ts"
import * as Store from "./Store.ts"

/**
 * Runs an effect with the keys of a layer, over the service's store, which is started if it does not run. The master key is
 * compared with the database before anything is sealed with it.
 */
export const withStored = <I, A, E>(
  settings: Settings,
  keys: Layer.Layer<I, never, Database.Reads | Database.Writes | Sealing>,
  use: Effect.Effect<A, E, I>,
) =>
  Effect.flatMap(Store.open(settings), (store) =>
    Effect.provide(
      use,
      keys.pipe(
        Layer.provideMerge(MasterKey.guard),
        Layer.provide(MasterKey.layer(settings)),
        Layer.provideMerge(Migrations.layer),
        Layer.provide(Database.layer(store.connection)),
      ),
    ),
  ).pipe(Effect.scoped)

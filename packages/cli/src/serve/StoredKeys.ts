/** Access to keys in the store, for commands that run beside the service. */
import type { Sealing } from "@svc/cluster/sealing/Sealing"
import * as Database from "@svc/cluster/store/Database"
import * as Migrations from "@svc/cluster/store/Migrations"
import * as StoreClock from "@svc/cluster/store/StoreClock"
import { Effect, Layer, References } from "effect"
import * as MasterKey from "./MasterKey.ts"
import type { Settings } from "./Settings.ts"
import * as Store from "./Store.ts"

/** Without its notice about a wrong clock, which would be part of the command's output. */
const storeClock = StoreClock.layer.pipe(Layer.provide(Layer.succeed(References.MinimumLogLevel, "Warn")))

/**
 * Runs an effect with the keys of a layer, over the service's store, which is started if it does not run. The master key is
 * compared with the database before anything is sealed with it. The time is that of the store, because it decides when a new
 * key signs.
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
        Layer.provideMerge(Layer.merge(Migrations.layer, storeClock)),
        Layer.provide(Database.layer(store.connection)),
      ),
    ),
  ).pipe(Effect.scoped)

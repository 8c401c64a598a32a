/** Access to the issuer keys in the store, for commands that run beside the service. */
import { IssuerKeys, type IssuerKey } from "@svc/cluster/proof/IssuerKeys"
import * as Database from "@svc/cluster/store/Database"
import * as Migrations from "@svc/cluster/store/Migrations"
import { Effect, Layer } from "effect"
import * as MasterKey from "../serve/MasterKey.ts"
import type { Settings } from "../serve/Settings.ts"
import * as Store from "../serve/Store.ts"

/** Verifies that the master key matches the database before anything is sealed with it. */
const layer = (settings: Settings, store: Store.Store) =>
  IssuerKeys.layerOf(settings.baseUrl).pipe(
    Layer.provideMerge(MasterKey.guard),
    Layer.provide(MasterKey.layer(settings)),
    Layer.provideMerge(Migrations.layer),
    Layer.provide(Database.layer(store.connection)),
  )

interface Listed extends Pick<IssuerKey, "generation" | "algorithm" | "state" | "at"> {
  readonly kid: string
}

/** Lists the keys, and creates them if necessary. */
export const listed = (settings: Settings, rotate: boolean) =>
  Effect.flatMap(Store.open(settings), (store) =>
    Effect.flatMap(IssuerKeys, (keys) => (rotate ? keys.rotate : keys.list)).pipe(
      Effect.provide(layer(settings, store)),
    ),
  ).pipe(
    Effect.scoped,
    Effect.map((keys) =>
      keys.map(({ selector, generation, algorithm, state, at }): Listed => {
        return { kid: selector, generation, algorithm, state, at }
      }),
    ),
  )

const minute = (date: Date) => `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`

const saying = ({ state, at }: Listed): string =>
  ({
    waiting: `published, signs from ${minute(at)}`,
    signing: "signs",
    retired: `no longer used for signing, published until ${minute(at)}`,
    past: "no longer published",
  })[state]

export const lines = (keys: ReadonlyArray<Listed>): string =>
  keys.map((key) => `${key.algorithm}  ${key.kid}  ${saying(key)}\n`).join("")

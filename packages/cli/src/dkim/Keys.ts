/** Access to the DKIM keys in the store, for commands that run beside the service. */
import { DkimKeys, type ListedKey } from "@svc/cluster/mail/dkim/DkimKeys"
import * as Database from "@svc/cluster/store/Database"
import * as Migrations from "@svc/cluster/store/Migrations"
import { Effect, Layer } from "effect"
import * as MasterKey from "../serve/MasterKey.ts"
import type { Settings } from "../serve/Settings.ts"
import * as Store from "../serve/Store.ts"

/** Verifies that the master key matches the database before anything is sealed with it. */
const layer = (settings: Settings, store: Store.Store) =>
  DkimKeys.layer.pipe(
    Layer.provideMerge(MasterKey.guard),
    Layer.provide(MasterKey.layer(settings)),
    Layer.provideMerge(Migrations.layer),
    Layer.provide(Database.layer(store.connection)),
  )

/** Runs an effect with the keys, over the service's store, which is started if it does not run. */
export const withKeys = <A, E>(settings: Settings, use: (keys: DkimKeys["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(Store.open(settings), (store) =>
    Effect.flatMap(DkimKeys, use).pipe(Effect.provide(layer(settings, store))),
  ).pipe(Effect.scoped)

/** Lists the keys, and creates them if necessary. */
export const listed = (settings: Settings, rotate: boolean) =>
  withKeys(settings, (keys) =>
    rotate
      ? keys.rotate(settings.mailDomain)
      : Effect.andThen(keys.ensure(settings.mailDomain), keys.list(settings.mailDomain)),
  )

/** Splits a value into TXT strings of at most 255 bytes (RFC 1035 section 3.3.14). */
const strings = (text: string) =>
  text
    .match(/.{1,250}/g)!
    .map((one) => `"${one}"`)
    .join(" ")

const day = (date: Date) => date.toISOString().slice(0, 10)

const saying = ({ state, at }: ListedKey): string =>
  ({
    waiting: `publish it now: used for signing once it is visible, by ${day(at)} at the latest`,
    signing: "signs",
    retired: `no longer used for signing; keep it until ${day(at)}`,
    past: "can be removed",
  })[state]

/** Formats the records as lines of a zone file. */
export const zone = (keys: ReadonlyArray<ListedKey>): string =>
  keys.map((key) => `; ${key.selector}: ${saying(key)}\n${key.name}.  TXT  (${strings(key.record)})\n`).join("\n")

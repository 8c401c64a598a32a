/** The issuer keys in the store. */
import { IssuerKeys, type IssuerKey } from "@svc/cluster/proof/IssuerKeys"
import { Effect } from "effect"
import type { Settings } from "../serve/Settings.ts"
import { withStored } from "../serve/StoredKeys.ts"

interface Listed extends Pick<IssuerKey, "generation" | "algorithm" | "state" | "at"> {
  readonly kid: string
}

/** Lists the keys, and creates them if necessary. */
export const listed = (settings: Settings, rotate: boolean) =>
  withStored(
    settings,
    IssuerKeys.layerOf(settings.baseUrl),
    Effect.flatMap(IssuerKeys, (keys) => (rotate ? keys.rotate : keys.list)),
  ).pipe(
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

export const printed = (keys: ReadonlyArray<Listed>): string =>
  keys.map((key) => `${key.algorithm}  ${key.kid}  ${saying(key)}\n`).join("")

/**
 * The platforms of this process, each made of its folder: a line in {@link folders} and the folder of that name are all
 * there is to know of one.
 */
import { Addresses } from "@svc/domain/Addresses"
import { type PlatformName, platformNames } from "@svc/domain/connectors/PlatformName"
import { Context, Effect, Layer } from "effect"
import type { Platform, PlatformModule } from "./Platform.ts"

const folders: { readonly [Name in PlatformName]: () => Promise<PlatformModule> } = {
  bluesky: () => import("./bluesky/Platform.ts"),
  mastodon: () => import("./mastodon/Platform.ts"),
}

export interface PlatformSettings {
  /** The line that a disclosed profile carries. */
  readonly disclosure: string
  /** A setting of the deployment, by its whole name. */
  readonly setting: (name: string) => string | undefined
}

export class Platforms extends Context.Service<Platforms, { readonly of: (name: PlatformName) => Platform }>()(
  "@svc/cluster/connectors/platforms/Platforms",
) {
  static readonly layer = ({ disclosure, setting }: PlatformSettings) =>
    Layer.effect(
      Platforms,
      Effect.gen(function* () {
        const book = yield* Addresses
        const made = new Map<PlatformName, Platform>()
        for (const name of platformNames) {
          const { make } = yield* Effect.promise(folders[name])
          const prefix = `SVC_${name.toUpperCase()}_`
          made.set(name, yield* make({ book, disclosure, setting: (of) => setting(prefix + of) }))
        }
        // Each name has a folder, as the compiler sees to.
        return { of: (name) => made.get(name)! }
      }),
    )
}

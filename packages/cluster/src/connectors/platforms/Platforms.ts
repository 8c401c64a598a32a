/** The platforms of this process. A new platform needs a folder and an entry in {@link folders}. */
import { Addresses } from "@svc/domain/Addresses"
import type { PlatformName } from "@svc/domain/connectors/Connector"
import { platformNames } from "@svc/domain/connectors/PlatformNames"
import { Context, Effect, Layer, type Scope } from "effect"
import type { ServiceKey } from "../../sealing/ServiceKey.ts"
import type { Platform, PlatformModule } from "./Platform.ts"

const folders: { readonly [Name in PlatformName]: () => Promise<PlatformModule> } = {
  bluesky: () => import("./bluesky/Platform.ts"),
  mastodon: () => import("./mastodon/Platform.ts"),
}

const prefixOf = (name: PlatformName) => `SVC_${name.toUpperCase()}_`

/** Full names of the settings that platforms read. */
export const settingNames = Effect.map(
  Effect.promise(() => Promise.all(platformNames.map(async (name) => ({ name, of: await folders[name]() })))),
  (modules) => modules.flatMap(({ name, of }) => of.settings.map((setting) => prefixOf(name) + setting)),
)

interface PlatformSettings {
  /** The line for profiles that are marked as automated. */
  readonly disclosure: string
  /** Returns a setting of the deployment by its full name. */
  readonly setting: (name: string) => string | undefined
}

/** Loads a platform when its first Connector is loaded, because the libraries would dominate the startup time. */
export class Platforms extends Context.Service<
  Platforms,
  { readonly of: (name: PlatformName) => Effect.Effect<Platform> }
>()("@svc/cluster/connectors/platforms/Platforms") {
  static readonly layer = ({ disclosure, setting }: PlatformSettings) =>
    Layer.effect(
      Platforms,
      Effect.gen(function* () {
        const book = yield* Addresses
        const services = yield* Effect.context<ServiceKey | Scope.Scope>()
        const made = new Map<PlatformName, Effect.Effect<Platform>>()
        for (const name of platformNames) {
          const prefix = prefixOf(name)
          const load = Effect.flatMap(Effect.promise(folders[name]), ({ make }) =>
            make({ book, disclosure, setting: (of) => setting(prefix + of) }),
          )
          made.set(name, yield* Effect.cached(Effect.provideContext(load, services)))
        }
        // The type of `folders` guarantees a folder for each name.
        return { of: (name) => made.get(name)! }
      }),
    )
}

/**
 * The platforms of this process, each made of its folder: `platformNames` is the list, and the folder of a name here is
 * all there is to know of it.
 */
import { Addresses } from "@svc/domain/Addresses"
import { type PlatformName, platformNames } from "@svc/domain/connectors/PlatformName"
import { Context, Effect, Layer } from "effect"
import type { Platform, PlatformModule } from "./Platform.ts"

/** The folder's module; its name comes out of our own list, so the compiler cannot see which one it is. */
const load = (name: PlatformName): Promise<PlatformModule> => import(`./${name}/Platform.ts`)

export interface PlatformSettings {
  /** The line that a disclosed profile carries. */
  readonly disclosure: string
  /** A setting of the deployment, by its whole name. */
  readonly setting: (name: string) => string | undefined
}

export class Platforms extends Context.Service<Platforms, { readonly of: (name: string) => Platform | undefined }>()(
  "@svc/cluster/connectors/platforms/Platforms",
) {
  static readonly layer = ({ disclosure, setting }: PlatformSettings) =>
    Layer.effect(
      Platforms,
      Effect.gen(function* () {
        const book = yield* Addresses
        const made = new Map<string, Platform>()
        for (const name of platformNames) {
          const { make } = yield* Effect.promise(() => load(name))
          const prefix = `SVC_${name.toUpperCase()}_`
          made.set(name, yield* make({ book, disclosure, setting: (of) => setting(prefix + of) }))
        }
        return { of: (name) => made.get(name) }
      }),
    )
}

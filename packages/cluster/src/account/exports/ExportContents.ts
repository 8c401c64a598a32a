/**
 * The contents of an export: one JSON Lines file per resource in the API's own shapes, and an mbox per Identity. Each
 * capability declares its members. Vault values are never among them: a session's download adds them while it streams.
 */
import { Context, Effect, Layer } from "effect"
import type { Exported, ExportWriter, NeedsOfExport } from "../../Capability.ts"
import { IdentityQueries } from "../../identity/IdentityQueries.ts"
import * as Cursors from "../../sealing/Cursors.ts"

export class ExportContents extends Context.Service<
  ExportContents,
  {
    /** Writes the members of the whole Org, or of the Identity `canonical`. */
    readonly write: (org: string, canonical: string | null, pieces: ExportWriter) => Effect.Effect<void, unknown>
  }
>()("svc/ExportContents") {
  static readonly layer = <E extends Exported<unknown>>(
    exports: ReadonlyArray<E>,
  ): Layer.Layer<ExportContents, never, NeedsOfExport<E> | IdentityQueries> =>
    Layer.effect(
      ExportContents,
      Effect.gen(function* () {
        const context = yield* Effect.context<NeedsOfExport<E> | IdentityQueries>()
        const identities = yield* IdentityQueries
        const write = Effect.fnUntraced(function* (org: string, canonical: string | null, pieces: ExportWriter) {
          const found =
            canonical === null
              ? yield* Cursors.all((request) => identities.list(org, request))
              : [yield* identities.read(org, canonical)]
          for (const { once } of exports) if (once !== undefined) yield* once({ org, canonical, found }, pieces)
          for (const { id, handle } of found)
            for (const { ofIdentity } of exports)
              if (ofIdentity !== undefined) yield* ofIdentity({ org, id, handle }, pieces)
        }, Effect.provideContext(context))
        return { write: write as ExportContents["Service"]["write"] }
      }),
    )
}

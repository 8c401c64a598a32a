import { Api } from "@svc/domain/Api"
import { ifMatch, tagOf } from "@svc/domain/Precondition"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { ask } from "@svc/cluster/actor/Ask"
import { Effect } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import * as OwnIdentity from "../identity/OwnIdentity.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "cards",
  Effect.fn(function* (handlers) {
    const own = yield* OwnIdentity.make
    const cards = yield* CardQueries
    const read = (org: string, name: string) =>
      Effect.map(cards.read(org, name), ({ card, version }) =>
        HttpApiSchema.withHeaders({ body: card, headers: { etag: tagOf(version) } }),
      )

    return handlers.handleAll({
      read: Effect.fnUntraced(function* ({ params }) {
        const { org_id, name } = yield* own(params.handle)
        return yield* read(org_id, name)
      }),
      patch: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const { org_id, name, actor } = yield* own(params.handle)
        yield* ask(actor.PatchCard({ org_id, patch: payload, if_version: ifMatch(headers["if-match"]) }))
        return yield* read(org_id, name)
      }),
    })
  }),
)

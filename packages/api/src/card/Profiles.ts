import { Api } from "@svc/domain/Api"
import { canonical } from "@svc/domain/handles/Handle"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { Effect } from "effect"
import * as Serving from "../http/Serving.ts"

export const layer = Serving.group(
  Api,
  "profiles",
  Effect.fn(function* (handlers) {
    const cards = yield* CardQueries
    return handlers.handle("read", ({ params }) =>
      Effect.map(cards.profile(canonical(params.handle)), ({ profile }) => profile),
    )
  }),
)

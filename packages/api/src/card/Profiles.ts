import { Api } from "@svc/domain/Api"
import { canonical } from "@svc/domain/handles/Handle"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { Effect } from "effect"
import * as RequestServices from "../http/RequestServices.ts"

export const layer = RequestServices.group(
  Api,
  "profiles",
  Effect.fn(function* (handlers) {
    const cards = yield* CardQueries
    return handlers.handle("read", ({ params }) =>
      Effect.map(cards.profile(canonical(params.handle)), ({ profile }) => profile),
    )
  }),
)

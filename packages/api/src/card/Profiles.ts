import { Api } from "@svc/domain/Api"
import { canonical } from "@svc/domain/handles/Handle"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect } from "effect"
import * as Serving from "../http/Serving.ts"
import { limited } from "../limits/PublicLimit.ts"

export const layer = Serving.group(
  Api,
  "profiles",
  Effect.fn(function* (handlers) {
    const cards = yield* CardQueries
    const limits = yield* PublicLimits
    return handlers.handle("read", ({ params }) =>
      Effect.andThen(
        limited(limits, "profile"),
        Effect.map(cards.profile(canonical(params.handle)), ({ profile }) => profile),
      ),
    )
  }),
)

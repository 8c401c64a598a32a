import { Addresses } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { Subject } from "@svc/domain/account/Authorization"
import { type Card, cardOf } from "@svc/domain/card/Card"
import { ifMatch, tagOf } from "@svc/domain/Precondition"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import { canonical } from "@svc/domain/handles/Handle"

export const layer = RequestServices.group(
  Api,
  "cards",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const cards = yield* CardQueries
    const book = yield* Addresses
    const answer = (card: Card, version: number) =>
      HttpApiSchema.withHeaders({ body: card, headers: { etag: tagOf(version) } })

    return handlers.handleAll({
      read: () =>
        Effect.flatMap(Subject, ({ id }) => Effect.map(cards.read(id), ({ card, version }) => answer(card, version))),
      patch: Effect.fnUntraced(function* ({ headers, payload }) {
        const subject = yield* Subject
        const if_version = ifMatch(headers["if-match"])
        const kept = yield* askIdentity(subject, (actor, by) =>
          actor.PatchCard({ org_id: subject.orgId, patch: payload, if_version }, by),
        )
        return answer(cardOf(book, subject.handle, kept), kept.version)
      }),
    })
  }),
)

export const profiles = RequestServices.group(
  Api,
  "profiles",
  Effect.fn(function* (handlers) {
    const cards = yield* CardQueries
    return handlers.handle("read", ({ params }) =>
      Effect.map(cards.profile(canonical(params.handle)), ({ profile }) => profile),
    )
  }),
)

import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { ApiKey } from "@svc/domain/account/Account"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as Serving from "../http/Serving.ts"
import { unchanged } from "../EntityTags.ts"
import { commandId, Exchange } from "../Exchange.ts"

const sameKey = unchanged(ApiKey)

export const layer = Serving.group(
  Api,
  "api_keys",
  Effect.fn(function* (handlers) {
    const keys = yield* ApiKeys

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* keys.list((yield* Caller).org.id, query)
        return { api_keys: entries, next_cursor }
      }),
      create: Effect.fnUntraced(function* ({ payload }) {
        const caller = yield* Caller
        const exchange = yield* Exchange
        const id = yield* commandId
        const location = `/api/keys/${id}`
        const minted = yield* keys
          .create(caller.org.id, id, payload.name, caller.by)
          .pipe(
            Effect.tapError(({ code }) =>
              Effect.sync(() => code === "conflict" && (exchange.headers["location"] = location)),
            ),
          )
        return HttpApiSchema.withHeaders({ body: minted, headers: { location } })
      }),
      read: ({ params }) => Effect.flatMap(Caller, ({ org }) => keys.read(org.id, params.id)),
      revoke: Effect.fnUntraced(function* ({ params, headers }) {
        const caller = yield* Caller
        yield* sameKey(headers["if-match"], keys.read(caller.org.id, params.id))
        yield* keys.revoke(caller.org.id, params.id, caller.by)
      }),
    })
  }),
)

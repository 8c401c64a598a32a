import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { Effect } from "effect"
import { commandId, Exchange } from "../Exchange.ts"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"

export const layer = HttpApiBuilder.group(
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
      revoke: Effect.fnUntraced(function* ({ params }) {
        const caller = yield* Caller
        yield* keys.revoke(caller.org.id, params.id, caller.by)
      }),
    })
  }),
)

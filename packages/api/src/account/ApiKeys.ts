import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { ApiKey } from "@svc/domain/account/Account"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as Serving from "../http/Serving.ts"
import { unchanged } from "../EntityTags.ts"

const sameKey = unchanged(ApiKey)

export const layer = Serving.group(
  Api,
  "api_keys",
  Effect.fn(function* (handlers) {
    const keys = yield* ApiKeys

    return handlers.handleAll({
      list: () => Effect.flatMap(Caller, ({ org }) => Effect.map(keys.list(org.id), (api_keys) => ({ api_keys }))),
      create: Effect.fnUntraced(function* ({ payload }) {
        const caller = yield* Caller
        const minted = yield* keys.create(caller.org.id, payload.name, caller.by)
        return HttpApiSchema.withHeaders({ body: minted, headers: { location: `/api/keys/${minted.api_key.id}` } })
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

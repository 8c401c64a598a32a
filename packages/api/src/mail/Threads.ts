import { Api } from "@svc/domain/Api"
import { Subject } from "@svc/domain/account/Authorization"
import { ThreadQueries } from "@svc/cluster/mail/ThreadQueries"
import { Effect } from "effect"
import * as RequestServices from "../http/RequestServices.ts"

export const layer = RequestServices.group(
  Api,
  "threads",
  Effect.fn(function* (handlers) {
    const threads = yield* ThreadQueries

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* threads.list((yield* Subject).id, query)
        return { threads: entries, next_cursor }
      }),
      read: Effect.fnUntraced(function* ({ params, query }) {
        return yield* threads.read((yield* Subject).id, params.id, query)
      }),
    })
  }),
)

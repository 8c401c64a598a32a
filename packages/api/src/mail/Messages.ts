import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { MessageQueries } from "@svc/cluster/mail/MessageQueries"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"

export const layer = HttpApiBuilder.group(
  Api,
  "messages",
  Effect.fn(function* (handlers) {
    const identities = yield* IdentityQueries
    const messages = yield* MessageQueries
    const mailboxOf = (handle: string) =>
      Effect.flatMap(Caller, ({ org }) => identities.idOf(org.id, canonical(handle)))

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ params, query }) {
        return { messages: yield* messages.list(yield* mailboxOf(params.handle), query) }
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        return yield* messages.read(yield* mailboxOf(params.handle), params.id)
      }),
    })
  }),
)

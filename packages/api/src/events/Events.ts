import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import { fromPublic } from "@svc/domain/Ids"
import { NotFound, WebhookMismatch } from "@svc/domain/problems/Problem"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/identity/Identities"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { commandId } from "../Exchange.ts"
import * as OwnIdentity from "../identity/OwnIdentity.ts"
import * as EventStreams from "./EventStreams.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fn(function* (handlers) {
    const events = yield* EventQueries
    const actors = yield* Identities
    const webhooks = yield* WebhookQueries
    const own = yield* OwnIdentity.make
    const streams = yield* EventStreams.make

    return handlers.handleAll({
      list: ({ query }) => Effect.flatMap(Caller, ({ org }) => events.list(org.id, query)),
      read: ({ params }) => Effect.flatMap(Caller, ({ org }) => events.read(org.id, params.id)),
      stream: ({ headers }) =>
        Effect.flatMap(Caller, ({ org }) => streams.open(org.id, null, headers["last-event-id"])),
      streamOfIdentity: Effect.fnUntraced(function* ({ params, headers }) {
        const { id, org_id } = yield* own(params.handle)
        return yield* streams.open(org_id, id, headers["last-event-id"])
      }),
      replay: Effect.fnUntraced(function* ({ params, payload }) {
        const caller = yield* Caller
        const event = yield* events.read(caller.org.id, params.id)
        // An Identity Key sees its own Identity's Events only; another's do not exist for it.
        if (caller.identity !== null && event.identity_id !== caller.identity.id) {
          return yield* new NotFound({ detail: "There is no such Event." })
        }
        const event_id = fromPublic("evt_", params.id)
        const webhook_id = fromPublic("wh_", payload.webhook_id)
        if (event_id === undefined || webhook_id === undefined)
          return yield* new NotFound({ detail: "There is no such Webhook." })
        if (event.handle === null) {
          return yield* new WebhookMismatch({
            detail: "An Org-level Event concerns no Identity and reaches no Webhook.",
          })
        }
        const delivery_id = yield* commandId
        yield* ask(
          actors.of(canonical(event.handle)).Replay({ org_id: caller.org.id, delivery_id, event_id, webhook_id }),
        )
        return { delivery: yield* webhooks.delivery(delivery_id) }
      }),
    })
  }),
)

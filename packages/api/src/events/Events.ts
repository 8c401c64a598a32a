import { Api } from "@svc/domain/Api"
import { Caller, Realm, Subject } from "@svc/domain/account/Authorization"
import { fromPublic } from "@svc/domain/Ids"
import { NotFound, WebhookMismatch } from "@svc/domain/problems/Problem"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import { commandId } from "../RequestContext.ts"
import * as EventStreams from "./EventStreams.ts"

export const layer = RequestServices.group(
  Api,
  "events",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const events = yield* EventQueries
    const webhooks = yield* WebhookQueries
    const streams = yield* EventStreams.make

    return handlers.handleAll({
      list: ({ query }) => Effect.flatMap(Caller, ({ org }) => events.list(org.id, query)),
      listOfIdentity: ({ query }) =>
        Effect.flatMap(Subject, ({ handle, orgId }) => events.list(orgId, { ...query, handle })),
      read: ({ params }) => Effect.flatMap(Caller, ({ org }) => events.read(org.id, params.id)),
      stream: ({ headers }) =>
        Effect.flatMap(Caller, ({ org }) => streams.open(org.id, null, headers["last-event-id"])),
      streamOfIdentity: ({ headers }) =>
        Effect.flatMap(Subject, ({ id, orgId }) => streams.open(orgId, id, headers["last-event-id"])),
      replay: Effect.fnUntraced(function* ({ params, payload }) {
        const { subject } = yield* Realm
        const event_id = fromPublic("evt_", params.id)
        const webhook_id = fromPublic("wh_", payload.webhook_id)
        if (event_id === undefined || webhook_id === undefined)
          return yield* new NotFound({ detail: "The Webhook does not exist." })
        if (subject === null) {
          return yield* new WebhookMismatch({
            detail: "An Org-level Event concerns no Identity and reaches no Webhook.",
          })
        }
        const delivery_id = yield* commandId
        yield* askIdentity(subject, (actor, by) =>
          actor.Replay({ org_id: subject.orgId, delivery_id, event_id, webhook_id }, by),
        )
        return HttpApiSchema.withHeaders({
          body: { delivery: yield* webhooks.delivery(delivery_id) },
          headers: { location: `/api/identities/${subject.handle}/webhooks/${payload.webhook_id}/deliveries` },
        })
      }),
    })
  }),
)

import { Api } from "@svc/domain/Api"
import { Caller } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import { fromPublic, makeUuidV7, toPublic } from "@svc/domain/Ids"
import { NotFound, WebhookTargetRefused } from "@svc/domain/problems/Problem"
import { ask, Identities } from "@svc/cluster/identity/Ask"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Effect } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"

export const layer = HttpApiBuilder.group(
  Api,
  "webhooks",
  Effect.fn(function* (handlers) {
    const actors = yield* Identities
    const identities = yield* IdentityQueries
    const webhooks = yield* WebhookQueries
    const client = yield* GuardedClient
    const identityOf = (handle: string) =>
      Effect.flatMap(Caller, ({ org }) => identities.idOf(org.id, canonical(handle)))

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ params }) {
        return { webhooks: yield* webhooks.list(yield* identityOf(params.handle)) }
      }),
      create: Effect.fnUntraced(function* ({ params, payload }) {
        const { org } = yield* Caller
        yield* identityOf(params.handle)
        yield* Effect.mapError(
          client.assertTarget(payload.url),
          (refusal) =>
            new WebhookTargetRefused({ detail: refusal.message, errors: [{ path: "/url", message: refusal.message }] }),
        )
        const webhook_id = yield* makeUuidV7
        const event_types = [...new Set(payload.event_types)]
        const description = payload.description ?? null
        const made = yield* ask(
          actors
            .of(canonical(params.handle))
            .RegisterWebhook({ org_id: org.id, webhook_id, url: payload.url, event_types, description }),
        )
        const id = toPublic("wh_", webhook_id)
        return HttpApiSchema.withHeaders({
          body: {
            id,
            url: payload.url,
            event_types,
            description,
            status: "active" as const,
            created_at: made.created_at,
            signing_secret: made.signing_secret,
          },
          headers: { location: `/api/identities/${params.handle}/webhooks/${id}` },
        })
      }),
      deliveries: Effect.fnUntraced(function* ({ params, query }) {
        const identityId = yield* identityOf(params.handle)
        const webhookId = fromPublic("wh_", params.id)
        if (webhookId === undefined) return yield* new NotFound({ detail: "There is no such Webhook." })
        return { deliveries: yield* webhooks.deliveries(identityId, webhookId, query.limit) }
      }),
    })
  }),
)

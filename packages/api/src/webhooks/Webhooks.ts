import { Api } from "@svc/domain/Api"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { ifMatch, tagOf } from "@svc/domain/Precondition"
import { NotFound, WebhookTargetRefused } from "@svc/domain/problems/Problem"
import { ask } from "@svc/cluster/actor/Ask"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Effect } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { commandId } from "../Exchange.ts"
import * as OwnIdentity from "../identity/OwnIdentity.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "webhooks",
  Effect.fn(function* (handlers) {
    const webhooks = yield* WebhookQueries
    const client = yield* GuardedClient
    const own = yield* OwnIdentity.make

    const judgeTarget = (url: string) =>
      Effect.mapError(
        client.assertTarget(url),
        (refusal) =>
          new WebhookTargetRefused({ detail: refusal.message, errors: [{ path: "/url", message: refusal.message }] }),
      )
    const webhookOf = Effect.fnUntraced(function* (params: { readonly handle: string; readonly id: string }) {
      const identity = yield* own(params.handle)
      const webhook_id = fromPublic("wh_", params.id)
      if (webhook_id === undefined) return yield* new NotFound({ detail: "There is no such Webhook." })
      return { ...identity, webhook_id }
    })
    const view = (identityId: string, webhookId: string) =>
      Effect.map(webhooks.read(identityId, webhookId), ({ webhook, version }) =>
        HttpApiSchema.withHeaders({ body: webhook, headers: { etag: tagOf(version) } }),
      )

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ params }) {
        return { webhooks: yield* webhooks.list((yield* own(params.handle)).id) }
      }),
      create: Effect.fnUntraced(function* ({ params, payload }) {
        const { org_id, actor } = yield* own(params.handle)
        yield* judgeTarget(payload.url)
        const webhook_id = yield* commandId
        const event_types = [...new Set(payload.event_types)]
        const description = payload.description ?? null
        const made = yield* ask(
          actor.RegisterWebhook({ org_id, webhook_id, url: payload.url, event_types, description }),
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
      read: Effect.fnUntraced(function* ({ params }) {
        const { id, webhook_id } = yield* webhookOf(params)
        return yield* view(id, webhook_id)
      }),
      patch: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const { id, org_id, actor, webhook_id } = yield* webhookOf(params)
        if (payload.url !== undefined) yield* judgeTarget(payload.url)
        const if_version = ifMatch(headers["if-match"])
        yield* ask(actor.PatchWebhook({ org_id, webhook_id, patch: payload, if_version }))
        return yield* view(id, webhook_id)
      }),
      remove: Effect.fnUntraced(function* ({ params }) {
        const { org_id, actor, webhook_id } = yield* webhookOf(params)
        yield* ask(actor.RemoveWebhook({ org_id, webhook_id }))
      }),
      test: Effect.fnUntraced(function* ({ params }) {
        const { org_id, actor, webhook_id } = yield* webhookOf(params)
        const delivery_id = yield* commandId
        // One id for the Event too, so that a repeat of the command makes neither twice.
        yield* ask(actor.TestWebhook({ org_id, webhook_id, delivery_id, event_id: delivery_id }))
        return { delivery: yield* webhooks.delivery(delivery_id) }
      }),
      rotate: Effect.fnUntraced(function* ({ params }) {
        const { org_id, actor } = yield* own(params.handle)
        return yield* ask(actor.RotateSecret({ org_id, secret_id: yield* commandId }))
      }),
      deliveries: Effect.fnUntraced(function* ({ params, query }) {
        const { id, webhook_id } = yield* webhookOf(params)
        return { deliveries: yield* webhooks.deliveries(id, webhook_id, query.limit) }
      }),
    })
  }),
)

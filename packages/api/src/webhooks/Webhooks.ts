import { Api } from "@svc/domain/Api"
import { Caller, Subject } from "@svc/domain/account/Authorization"
import { Addresses, keyUrl } from "@svc/domain/Addresses"
import { lacksToReceive } from "@svc/domain/events/Event"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { ifMatch, tagOf } from "@svc/domain/Precondition"
import { NotFound, ScopeMissing, WebhookTargetRefused } from "@svc/domain/problems/Problem"
import { adopts } from "@svc/domain/webhooks/Webhook"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import { Effect } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import { commandId, unlessMade } from "../RequestContext.ts"

export const layer = RequestServices.group(
  Api,
  "webhooks",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const webhooks = yield* WebhookQueries
    const client = yield* GuardedClient
    const book = yield* Addresses

    const judgeTarget = (url: string) =>
      Effect.mapError(
        client.assertTarget(url),
        (refusal) =>
          new WebhookTargetRefused({ detail: refusal.message, errors: [{ path: "/url", message: refusal.message }] }),
      )
    /** Fails if the caller may not read everything that Events of these types contain. */
    const judgeTypes = Effect.fnUntraced(function* (types: ReadonlyArray<string>) {
      const { scopes, credentialId } = yield* Caller
      const lacking = lacksToReceive(scopes, types)
      if (lacking.length === 0) return
      const widen_url = keyUrl(book, credentialId)
      return yield* new ScopeMissing({
        detail: `The credential may not read all subscribed Events: ${types.join(", ")} require ${lacking.join(", ")} or event:read. Remove these types, or use a key with these scopes (${widen_url}).`,
        scopes: lacking,
        widen_url,
      })
    })
    const uuidOf = (id: string) => {
      const uuid = fromPublic("wh_", id)
      return uuid === undefined
        ? Effect.fail(new NotFound({ detail: "The Webhook does not exist." }))
        : Effect.succeed(uuid)
    }
    const view = (identityId: IdentityId, webhookId: string) =>
      Effect.map(webhooks.read(identityId, webhookId), ({ webhook, version }) =>
        HttpApiSchema.withHeaders({ body: webhook, headers: { etag: tagOf(version) } }),
      )

    const at = (handle: string, id: string) => `/api/identities/${encodeURIComponent(handle)}/webhooks/${id}`
    const deliveriesOf = (handle: string, id: string) => `${at(handle, id)}/deliveries`

    return handlers.handleAll({
      list: Effect.fnUntraced(function* ({ query }) {
        const { entries, next_cursor } = yield* webhooks.list((yield* Subject).id, query)
        return { webhooks: entries, next_cursor }
      }),
      create: Effect.fnUntraced(function* ({ params, payload }) {
        const subject = yield* Subject
        const { orgId } = subject
        yield* judgeTypes(payload.event_types)
        yield* judgeTarget(payload.url)
        const webhook_id = yield* commandId
        const event_types = [...new Set(payload.event_types)]
        const description = payload.description ?? null
        const id = toPublic("wh_", webhook_id)
        const made = yield* askIdentity(
          subject,
          (actor, by) =>
            actor.RegisterWebhook({ org_id: orgId, webhook_id, url: payload.url, event_types, description }, by),
          id,
        )
        return HttpApiSchema.withHeaders({
          body: {
            id,
            url: payload.url,
            event_types,
            description,
            status: "active" as const,
            stopped_reason: null,
            failing_since: null,
            created_at: made.created_at,
            signing_secret: made.signing_secret,
          },
          headers: { location: at(params.handle, id) },
        })
      }),
      read: Effect.fnUntraced(function* ({ params }) {
        return yield* view((yield* Subject).id, yield* uuidOf(params.id))
      }),
      patch: Effect.fnUntraced(function* ({ params, headers, payload }) {
        const subject = yield* Subject
        const { id, orgId } = subject
        const webhook_id = yield* uuidOf(params.id)
        // Changing the URL of a Webhook or resuming it gives access to its Events.
        if (adopts(payload)) {
          yield* judgeTypes(payload.event_types ?? (yield* webhooks.read(id, webhook_id)).webhook.event_types)
        }
        if (payload.url !== undefined) yield* judgeTarget(payload.url)
        const if_version = ifMatch(headers["if-match"])
        yield* unlessMade(
          askIdentity(subject, (actor, by) =>
            actor.PatchWebhook({ org_id: orgId, webhook_id, patch: payload, if_version }, by),
          ),
        )
        return yield* view(id, webhook_id)
      }),
      remove: Effect.fnUntraced(function* ({ params, headers }) {
        const subject = yield* Subject
        const { orgId } = subject
        const webhook_id = yield* uuidOf(params.id)
        const if_version = ifMatch(headers["if-match"])
        yield* askIdentity(subject, (actor, by) => actor.RemoveWebhook({ org_id: orgId, webhook_id, if_version }, by))
      }),
      test: Effect.fnUntraced(function* ({ params }) {
        const subject = yield* Subject
        const { orgId } = subject
        const webhook_id = yield* uuidOf(params.id)
        const delivery_id = yield* commandId
        // One id for the Event as well, so that a repeat of the command creates neither twice.
        yield* askIdentity(subject, (actor, by) =>
          actor.TestWebhook({ org_id: orgId, webhook_id, delivery_id, event_id: delivery_id }, by),
        )
        return HttpApiSchema.withHeaders({
          body: { delivery: yield* webhooks.delivery(delivery_id) },
          headers: { location: deliveriesOf(params.handle, params.id) },
        })
      }),
      rotate: Effect.fnUntraced(function* () {
        const subject = yield* Subject
        const { orgId } = subject
        const secret_id = yield* commandId
        return yield* askIdentity(subject, (actor, by) => actor.RotateSecret({ org_id: orgId, secret_id }, by))
      }),
      deliveries: Effect.fnUntraced(function* ({ params, query }) {
        const { id } = yield* Subject
        const eventId = query.event_id === undefined ? undefined : fromPublic("evt_", query.event_id)
        const request = { limit: query.limit, cursor: query.cursor, status: query.status, eventId }
        const { entries, next_cursor } = yield* webhooks.deliveries(id, yield* uuidOf(params.id), request)
        return { deliveries: entries, next_cursor }
      }),
      request: Effect.fnUntraced(function* ({ params }) {
        const { id, handle } = yield* Subject
        const delivery = fromPublic("dlv_", params.delivery_id)
        if (delivery === undefined) return yield* new NotFound({ detail: "The delivery does not exist." })
        const webhookId = yield* uuidOf(params.id)
        yield* judgeTypes((yield* webhooks.read(id, webhookId)).webhook.event_types)
        return yield* webhooks.request(id, handle, webhookId, delivery)
      }),
      recover: Effect.fnUntraced(function* ({ params, payload }) {
        const subject = yield* Subject
        const { orgId } = subject
        const webhook_id = yield* uuidOf(params.id)
        const body = yield* askIdentity(subject, (actor, by) =>
          actor.Recover({ org_id: orgId, webhook_id, since: payload.since }, by),
        )
        return HttpApiSchema.withHeaders({ body, headers: { location: deliveriesOf(params.handle, params.id) } })
      }),
    })
  }),
)

/** Queries for Webhooks and their delivery logs. */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { toPublic } from "@svc/domain/Ids"
import type { PageRequest } from "@svc/domain/Paging"
import { Attempt, type Delivery, type DeliveryStatus } from "@svc/domain/deliveries/Delivery"
import { NotFound } from "@svc/domain/problems/Problem"
import type { Webhook } from "@svc/domain/webhooks/Webhook"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { creatorColumns } from "../credentials/Creator.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../store/Database.ts"
import { bodyOf, requestIdOf, userAgent } from "./DeliveryRequest.ts"
import { joinFailing, joinWebhookCreator, stateOf, type WebhookState } from "./WebhookState.ts"

interface WebhookRow extends WebhookState {
  readonly id: string
  readonly url: string
  readonly description: string | null
  readonly failing_since: Date | null
  readonly created_at: Date
}

interface DeliveryRow {
  readonly id: string
  readonly event_id: string
  readonly event_type: string
  readonly status: DeliveryStatus
  readonly replay: boolean
  readonly attempts: unknown
  readonly next_attempt_at: Date | null
  readonly created_at: Date
}

/** A request for a page of the delivery log, optionally filtered by status or Event. */
interface DeliveryRequested extends PageRequest {
  readonly status?: DeliveryStatus | undefined
  readonly eventId?: string | undefined
}

const decodeAttempts = Schema.decodeUnknownEffect(Schema.Array(Attempt))

const webhookView = (row: WebhookRow): Webhook => ({
  id: toPublic("wh_", row.id),
  url: row.url,
  event_types: row.event_types,
  description: row.description,
  ...stateOf(row),
  failing_since: row.failing_since,
  created_at: row.created_at,
})

const deliveryView = (row: DeliveryRow): Effect.Effect<Delivery> =>
  Effect.map(Effect.orDie(decodeAttempts(row.attempts)), (attempts) => ({
    ...row,
    id: toPublic("dlv_", row.id),
    event_id: toPublic("evt_", row.event_id),
    attempts,
  }))

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const deliveryColumns = sql`id, event_id, event_type, status, replay, attempts, next_attempt_at, created_at`
  /** Selects Webhooks with the state of their creators now. */
  const webhooks = Effect.map(
    Clock.currentTimeMillis,
    (millis) => sql`
      select w.id, w.url, w.event_types, w.description, w.status, w.created_at, w.version, failing.since as failing_since,
             ${creatorColumns(sql)}
      from webhook w ${joinFailing(sql)} ${joinWebhookCreator(sql, sql`${new Date(millis)}::timestamptz`)}`,
  )

  return {
    list: (identityId: IdentityId, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `webhooks/${identityId}`,
          request,
          (behind, atMost) =>
            Effect.flatMap(
              webhooks,
              (found) => sql<WebhookRow>`${found}
                where w.identity_id = ${identityId} ${behind === undefined ? sql`` : sql`and w.id > ${behind}::uuid`}
                order by w.id limit ${atMost}`,
            ),
          ({ id }) => id,
          webhookView,
        ),
      ),
    read: Effect.fn("WebhookQueries.read")(function* (identityId: IdentityId, webhookId: string) {
      const [row] = yield* sql<WebhookRow & { version: number }>`${yield* webhooks}
        where w.id = ${webhookId} and w.identity_id = ${identityId}`
      if (row === undefined) return yield* new NotFound({ detail: "The Webhook does not exist." })
      return { webhook: webhookView(row), version: row.version }
    }, orUnavailable),
    /** Newest first. */
    deliveries: Effect.fn("WebhookQueries.deliveries")(function* (
      identityId: IdentityId,
      webhookId: string,
      request: DeliveryRequested,
    ) {
      const [webhook] = yield* sql`select 1 from webhook where id = ${webhookId} and identity_id = ${identityId}`
      if (webhook === undefined) return yield* new NotFound({ detail: "The Webhook does not exist." })
      const { status, eventId } = request
      const ofStatus = status === undefined ? sql`` : sql`and status = ${status}`
      const ofEvent = eventId === undefined ? sql`` : sql`and event_id = ${eventId}::uuid`
      const { entries, next_cursor } = yield* Cursors.page(
        sealing,
        Cursors.filteredList(`deliveries/${webhookId}`, { status, eventId }),
        request,
        (behind, atMost) => sql<DeliveryRow>`
          select ${deliveryColumns} from delivery
          where webhook_id = ${webhookId} ${ofStatus} ${ofEvent} ${behind === undefined ? sql`` : sql`and id < ${behind}::uuid`}
          order by id desc limit ${atMost}`,
        ({ id }) => id,
        deliveryView,
      )
      return { entries: yield* Effect.all(entries), next_cursor }
    }, orUnavailable),
    /** Returns the request of the latest attempt without its signature, or of an attempt made now if there was none. */
    request: Effect.fn("WebhookQueries.request")(function* (
      identityId: IdentityId,
      handle: string,
      webhookId: string,
      deliveryId: string,
    ) {
      const [row] = yield* sql<{
        url: string
        event_id: string
        event_type: string
        event_data: Record<string, unknown>
        event_created_at: Date
        started_at: Date | null
      }>`
        select w.url, e.id as event_id, e.type as event_type, e.data as event_data, e.created_at as event_created_at,
          coalesce(d.attempt_started_at, (d.attempts->-1->>'started_at')::timestamptz) as started_at
        from delivery d join webhook w on w.id = d.webhook_id join event e on e.id = d.event_id
        where d.id = ${deliveryId} and d.webhook_id = ${webhookId} and w.identity_id = ${identityId}`
      if (row === undefined) return yield* new NotFound({ detail: "The delivery does not exist." })
      const at = row.started_at ?? new Date(yield* Clock.currentTimeMillis)
      const body = bodyOf({ id: identityId, handle }, row, { requestId: requestIdOf(deliveryId, at), at })
      const headers = {
        "content-type": "application/json",
        "webhook-id": toPublic("evt_", row.event_id),
        "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
        "user-agent": userAgent,
      }
      return { method: "POST" as const, url: row.url, headers, body }
    }, orUnavailable),
    delivery: (id: string) =>
      orUnavailable(
        Effect.flatMap(sql<DeliveryRow>`select ${deliveryColumns} from delivery where id = ${id}`, ([row]) =>
          row === undefined ? Effect.fail(new NotFound({ detail: "The delivery does not exist." })) : deliveryView(row),
        ),
      ),
  }
})

export class WebhookQueries extends Context.Service<WebhookQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/webhooks/WebhookQueries",
) {
  static readonly layer = Layer.effect(WebhookQueries, make)
}

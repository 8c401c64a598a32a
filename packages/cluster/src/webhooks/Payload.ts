/** The body of a delivery: the Event, with what is fresh for each attempt. */
import type { WebhookPayload } from "@svc/domain/events/WebhookPayload"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { Effect } from "effect"

interface Delivered {
  readonly event_id: string
  readonly event_type: string
  readonly event_data: Readonly<Record<string, unknown>>
  readonly event_created_at: Date
}

export const bodyOf = (
  identity: { readonly id: string; readonly handle: string },
  delivered: Delivered,
  at: Date,
): Effect.Effect<string> =>
  Effect.map(makeUuidV7, (request) => {
    const payload: { readonly [Member in keyof WebhookPayload]: unknown } = {
      request_id: toPublic("req_", request),
      timestamp: at.toISOString(),
      id: toPublic("evt_", delivered.event_id),
      type: delivered.event_type,
      created_at: delivered.event_created_at.toISOString(),
      identity_id: identity.id,
      handle: identity.handle,
      identity: { id: identity.id, handle: identity.handle },
      data: delivered.event_data,
    }
    return JSON.stringify(payload)
  })

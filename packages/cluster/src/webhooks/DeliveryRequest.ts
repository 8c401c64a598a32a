/**
 * The request of a delivery: its body, and headers with the signature of Standard Webhooks (decisions.md "Events"):
 * HMAC-SHA256 over `id.timestamp.body`.
 */
import { createHmac, randomBytes } from "node:crypto"
import { apiVersion } from "@svc/domain/Version"
import type { WebhookPayload } from "@svc/domain/events/WebhookPayload"
import { makeUuidV7, toPublic } from "@svc/domain/Ids"
import { Effect } from "effect"

const prefix = "whsec_"

/** A new signing secret: `whsec_` and base64 of 32 random bytes. */
export const newSecret = (): string => prefix + randomBytes(32).toString("base64")

interface Signed {
  /** The Event's `evt_` id, which receivers deduplicate on. */
  readonly id: string
  readonly at: Date
  readonly body: string
  /** Every secret that is valid now; receivers accept any one signature. */
  readonly secrets: ReadonlyArray<string>
}

/** The name of the caller, for the receiver's log and its filters. */
export const userAgent = `svc-webhooks/${apiVersion}`

export const signedHeaders = (message: Signed): Record<string, string> => {
  const timestamp = String(Math.floor(message.at.getTime() / 1000))
  const signatures = message.secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), "base64")
    return `v1,${createHmac("sha256", key).update(`${message.id}.${timestamp}.${message.body}`).digest("base64")}`
  })
  return {
    "webhook-id": message.id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
    "user-agent": userAgent,
  }
}

interface Delivered {
  readonly event_id: string
  readonly event_type: string
  readonly event_data: Readonly<Record<string, unknown>>
  readonly event_created_at: Date
}

/** Returns the body: the Event, with the id and the time of this attempt. */
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

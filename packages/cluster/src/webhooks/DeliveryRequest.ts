/**
 * The request of a delivery: its body, and headers with the signature of Standard Webhooks (decisions.md "Events"):
 * HMAC-SHA256 over `id.timestamp.body`.
 */
import { createHmac, hash, randomBytes } from "node:crypto"
import { apiVersion } from "@svc/domain/Version"
import type { WebhookPayload } from "@svc/domain/events/WebhookPayload"
import { toPublic } from "@svc/domain/Ids"

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

/**
 * Returns the request id of an attempt: a UUID of version 7 whose random bits are a hash of the delivery. It is computed,
 * so that the request of an earlier attempt can be shown byte for byte without storing it.
 */
export const requestIdOf = (deliveryId: string, startedAt: Date): string => {
  const time = startedAt.getTime().toString(16).padStart(12, "0")
  const digits = hash("sha256", `${deliveryId} ${time}`)
  return toPublic("req_", `${time}7${digits.slice(0, 3)}8${digits.slice(3, 18)}`)
}

/** Returns the body: the Event, with the request id and the time of an attempt. */
export const bodyOf = (
  identity: { readonly id: string; readonly handle: string },
  delivered: Delivered,
  attempt: { readonly requestId: string; readonly at: Date },
): string => {
  const payload: { readonly [Member in keyof WebhookPayload]: unknown } = {
    request_id: attempt.requestId,
    timestamp: attempt.at.toISOString(),
    id: toPublic("evt_", delivered.event_id),
    type: delivered.event_type,
    created_at: delivered.event_created_at.toISOString(),
    identity_id: identity.id,
    handle: identity.handle,
    identity: { id: identity.id, handle: identity.handle },
    data: delivered.event_data,
  }
  return JSON.stringify(payload)
}

/** Schemas of UUIDs and of public ids, one for each prefix. {@link module:Ids} converts between the two. */
import { Schema } from "effect"
import type { Prefix } from "./Ids.ts"

export const Uuid = Schema.String.check(Schema.isUUID())

/** The flag `u` makes the pattern valid in the OpenAPI document. */
const publicId = (prefix: Prefix, expected: string) =>
  Schema.String.check(Schema.isPattern(new RegExp(`^${prefix}[0-9a-hjkmnp-tv-z]{26}$`, "u"), { expected }))

export const EventId = publicId("evt_", "an Event id (evt_…)")
export const WebhookId = publicId("wh_", "a Webhook id (wh_…)")
export const ThreadId = publicId("thr_", "a thread id (thr_…)")
export const ExportId = publicId("exp_", "an export id (exp_…)")
export const DeliveryId = publicId("dlv_", "a delivery id (dlv_…)")
export const MessageId = publicId("msg_", "a message id (msg_…)")
export const RequestId = publicId("req_", "a request id (req_…)")
export const AuditId = publicId("aud_", "an audit record's id (aud_…)")

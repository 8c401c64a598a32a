/** Schemas of UUIDs and of public ids, one for each prefix. {@link module:Ids} converts between the two. */
import { Schema } from "effect"

export const Uuid = Schema.String.check(Schema.isUUID())

const expected = {
  evt_: "an Event id (evt_…)",
  wh_: "a Webhook id (wh_…)",
  thr_: "a thread id (thr_…)",
  exp_: "an export id (exp_…)",
  dlv_: "a delivery id (dlv_…)",
  msg_: "a message id (msg_…)",
  req_: "a request id (req_…)",
  aud_: "an audit record's id (aud_…)",
} as const
export type Prefix = keyof typeof expected

/** The flag `u` makes the pattern valid in the OpenAPI document. */
const publicId = (prefix: Prefix) =>
  Schema.String.check(
    Schema.isPattern(new RegExp(`^${prefix}[0-9a-hjkmnp-tv-z]{26}$`, "u"), { expected: expected[prefix] }),
  )

export const EventId = publicId("evt_")
export const WebhookId = publicId("wh_")
export const ThreadId = publicId("thr_")
export const ExportId = publicId("exp_")
export const DeliveryId = publicId("dlv_")
export const MessageId = publicId("msg_")
export const RequestId = publicId("req_")
export const AuditId = publicId("aud_")

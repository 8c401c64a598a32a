/** The body of a Webhook delivery, by type of Event. */
import { Schema } from "effect"
import { Uuid, EventId, RequestId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"
import { type DataOf, dataSchemas, type IdentityEventType, identityEventTypes, nameOf, testEventType } from "./Event.ts"
import { Nothing } from "./IdentityEvents.ts"

interface OfType<T, Data> {
  /** A new id and time for each attempt. */
  readonly request_id: string
  readonly timestamp: Date
  /** The id of the Event, by which receivers detect duplicates. */
  readonly id: string
  readonly type: T
  readonly created_at: Date
  readonly identity_id: string
  readonly handle: string
  /** The Identity under its former names. */
  readonly identity: { readonly id: string; readonly handle: string }
  readonly data: Data
}
export type WebhookPayload =
  | { [T in IdentityEventType]: OfType<T, DataOf<T>> }[IdentityEventType]
  | OfType<typeof testEventType, typeof Nothing.Type>

const payload = <T extends string, Data extends Schema.Constraint>(type: T, data: Data) =>
  Schema.Struct({
    request_id: RequestId,
    timestamp: Timestamp,
    id: EventId,
    type: Schema.Literal(type),
    created_at: Timestamp,
    identity_id: Uuid.annotate({ description: "The id of the Identity, as in `GET /api/events/{id}`." }),
    handle: Schema.String,
    identity: Schema.Struct({ id: Uuid, handle: Schema.String }).annotate({
      description: "The same as `identity_id` and `handle`; kept for receivers of earlier versions.",
    }),
    data,
  }).annotate({ identifier: `${nameOf(type)}Payload` })

const TestData = Nothing.annotate({
  identifier: `${nameOf(testEventType)}Data`,
  description: "A test of the Webhook; no list contains this Event.",
})

/** Types of Events that a Webhook can receive. */
export const deliveredTypes = [...identityEventTypes, testEventType] as const

// The cast restores, as for the Event, the union that `type` discriminates.
export const WebhookPayload = Schema.Union(
  [...identityEventTypes.map((type) => payload(type, dataSchemas.get(type)!)), payload(testEventType, TestData)],
  { mode: "oneOf" },
).annotate({
  identifier: "WebhookPayload",
}) as unknown as Schema.Codec<
  WebhookPayload,
  { readonly [K in keyof WebhookPayload]: K extends "created_at" | "timestamp" ? string : WebhookPayload[K] }
>

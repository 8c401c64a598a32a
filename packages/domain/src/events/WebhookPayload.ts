/** The body of a Webhook delivery, by Event type. */
import { Schema } from "effect"
import { Uuid, EventId, RequestId } from "../IdSchemas.ts"
import { Timestamp } from "../Timestamp.ts"
import { type DataOf, dataSchemas, type IdentityEventType, identityEventTypes, nameOf, testEventType } from "./Event.ts"
import { Nothing } from "./EmptyData.ts"

interface OfType<T, Data> {
  /** Fresh for each attempt, as is the time. */
  readonly request_id: string
  readonly timestamp: Date
  /** The Event's own id, by which receivers know what they had already. */
  readonly id: string
  readonly type: T
  readonly created_at: Date
  readonly identity_id: string
  readonly handle: string
  /** The same two, as earlier versions named them. */
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
  description: "A Webhook was tried out; the Event is in no list.",
})

/** Types that can reach a Webhook. */
export const deliveredTypes = [...identityEventTypes, testEventType] as const

// As with the Event, the type tells apart what the compiler sees as one.
export const WebhookPayload = Schema.Union(
  [...identityEventTypes.map((type) => payload(type, dataSchemas.get(type)!)), payload(testEventType, TestData)],
  { mode: "oneOf" },
).annotate({
  identifier: "WebhookPayload",
}) as unknown as Schema.Codec<
  WebhookPayload,
  { readonly [K in keyof WebhookPayload]: K extends "created_at" | "timestamp" ? string : WebhookPayload[K] }
>

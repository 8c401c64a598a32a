/** "Events" of interface.md. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization, Tagged } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { Tool } from "../mcp/Tool.ts"
import { Limit } from "../Paging.ts"
import { Text } from "../Text.ts"
import { Conflict, InvalidCursor, NotFound, Unavailable, WebhookMismatch } from "../problems/Problem.ts"
import { Delivery, WebhookId } from "../webhooks/Webhook.ts"
import { Event, EventId, EventType } from "./Event.ts"

/** The last Event the client has; the stream goes on behind it. */
const resumption = { "last-event-id": Schema.optionalKey(Text.check(Schema.isMaxLength(100))) }

/** Server-Sent Events: `id` is the Event's `evt_` id, `event` its type, `data` the Event as JSON. */
const EventStream = HttpApiSchema.StreamUint8Array({ contentType: "text/event-stream" })

export class EventApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("list", "/api/events", {
      query: {
        type: Schema.optionalKey(EventType),
        handle: Schema.optionalKey(HandleParam),
        limit: Limit,
        cursor: Schema.optionalKey(Text.check(Schema.isMaxLength(500))),
      },
      success: Schema.Struct({ events: Schema.Array(Event), next_cursor: Schema.NullOr(Schema.String) }),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .annotate(Access, "org")
      .annotate(Tool, { name: "svc_event_list", effect: "read", without: ["cursor"] }),
    HttpApiEndpoint.get("stream", "/api/events/stream", {
      headers: resumption,
      success: EventStream,
      error: [NotFound, Unavailable],
    }).annotate(Access, "org"),
    HttpApiEndpoint.get("streamOfIdentity", "/api/identities/:handle/events/stream", {
      params: { handle: HandleParam },
      headers: resumption,
      success: EventStream,
      error: [NotFound, Unavailable],
    }).annotate(Access, "any"),
    HttpApiEndpoint.get("read", "/api/events/:id", {
      params: { id: EventId },
      success: Event,
      error: [NotFound, Unavailable],
    })
      .annotate(Tagged, true)
      .annotate(Access, "org")
      .annotate(Tool, { name: "svc_event_get", effect: "read" }),
    HttpApiEndpoint.post("replay", "/api/events/:id/replay", {
      params: { id: EventId },
      payload: Schema.Struct({ webhook_id: WebhookId }),
      success: Schema.Struct({ delivery: Delivery }).pipe(HttpApiSchema.status(202)),
      error: [NotFound, WebhookMismatch, Conflict, Unavailable],
    }).annotate(Access, "any"),
  )
  .middleware(Authorization) {}

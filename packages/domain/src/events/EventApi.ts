/** "Events" of interface.md. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { Limit } from "../Paging.ts"
import { Text } from "../Text.ts"
import { Conflict, InvalidCursor, NotFound, Unavailable, WebhookMismatch } from "../problems/Problem.ts"
import { Delivery, WebhookId } from "../webhooks/Webhook.ts"
import { Event, EventId, EventType } from "./Event.ts"

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
    }).annotate(Access, "org"),
    HttpApiEndpoint.get("read", "/api/events/:id", {
      params: { id: EventId },
      success: Event,
      error: [NotFound, Unavailable],
    }).annotate(Access, "org"),
    HttpApiEndpoint.post("replay", "/api/events/:id/replay", {
      params: { id: EventId },
      payload: Schema.Struct({ webhook_id: WebhookId }),
      success: Schema.Struct({ delivery: Delivery }).pipe(HttpApiSchema.status(202)),
      error: [NotFound, WebhookMismatch, Conflict, Unavailable],
    }).annotate(Access, "any"),
  )
  .middleware(Authorization) {}

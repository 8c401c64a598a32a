/** Operations of interface.md "Events". */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { callers, Confidential, inRealm, onIdentity, Tagged, through } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, paging } from "../Paging.ts"
import { located } from "../Precondition.ts"
import { Text } from "../Text.ts"
import { Conflict, InvalidCursor, NotFound, Unavailable, WebhookMismatch } from "../problems/Problem.ts"
import { WebhookId } from "../IdSchemas.ts"
import { Delivery } from "../deliveries/Delivery.ts"
import { Event, EventId, EventType } from "./Event.ts"
import { About } from "../account/EndpointScope.ts"

/** The last Event that the client received. The stream resumes after it. */
const resumption = {
  "last-event-id": Schema.optionalKey(
    Text.check(Schema.isMaxLength(100)).annotate({ description: "The last Event that the client received." }),
  ),
}

/** Server-Sent Events: `id` is the Event's `evt_` id, `event` its type, `data` the Event as JSON. */
const EventStream = HttpApiSchema.StreamUint8Array({ contentType: "text/event-stream" })

const params = { id: EventId.annotate({ description: "The id of the resource." }) }

export class EventApi extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("list", "/api/events", {
      query: {
        type: Schema.optionalKey(EventType.annotate({ description: "Only Events of this type." })),
        handle: Schema.optionalKey(HandleParam),
        ...paging,
      },
      success: pageOf("events", Event),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "List Events, newest first")
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_event_list",
        effect: "read",
        untrusted: ["events"],
        columns: ["id", "created_at", "what"],
      }),
    HttpApiEndpoint.get("stream", "/api/events/stream", {
      query: {
        changes: Schema.optionalKey(
          Schema.Boolean.annotate({
            description: "Also send `changed` with the kinds and Handles of changed resources, without their content.",
          }),
        ),
      },
      headers: resumption,
      success: EventStream,
      error: [NotFound, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Stream the Events of the Org"),
    HttpApiEndpoint.get("listOfIdentity", "/api/identities/:handle/events", {
      params: { handle: HandleParam },
      query: { type: Schema.optionalKey(EventType.annotate({ description: "Only Events of this type." })), ...paging },
      success: pageOf("events", Event),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List the Events of an Identity, newest first")
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_identity_events",
        effect: "read",
        untrusted: ["events"],
        columns: ["id", "created_at", "what"],
      }),
    HttpApiEndpoint.get("streamOfIdentity", "/api/identities/:handle/events/stream", {
      params: { handle: HandleParam },
      headers: resumption,
      success: EventStream,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Stream the Events of an Identity"),
    HttpApiEndpoint.get("read", "/api/events/:id", {
      params,
      success: Event,
      error: [NotFound, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Read one Event")
      .annotate(Confidential, true)
      .annotate(Tagged, true)
      .annotate(Tool, {
        name: "svc_event_get",
        advice: "`data` depends on the type.",
        effect: "read",
        untrusted: ["data"],
      }),
    HttpApiEndpoint.post("replay", "/api/events/:id/replay", {
      params,
      payload: Schema.Struct({ webhook_id: WebhookId }),
      success: HttpApiSchema.WithHeaders(
        Schema.Struct({ delivery: Delivery }).pipe(HttpApiSchema.status(202)),
        located,
      ),
      error: [NotFound, WebhookMismatch, Conflict, Unavailable],
    })
      .pipe(inRealm(through("Event", "id")))
      .annotate(OpenApi.Summary, "Deliver an Event to a Webhook again"),
  )
  .annotateEndpoints(About, "event")
  .annotate(OpenApi.Description, "Everything notable that happened in the account.") {}

/** Operations of Webhooks: register, read, change, test and delete, and the delivery log. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { onIdentity, ShowsSecret } from "../account/Policy.ts"
import { Delivery, DeliveryRequest, DeliveryStatus } from "../deliveries/Delivery.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { DeliveryId, EventId, WebhookId } from "../IdSchemas.ts"
import { pageOf, paging } from "../Paging.ts"
import { Tool } from "../mcp/Tool.ts"
import { conditional, located } from "../Precondition.ts"
import {
  Conflict,
  IdentityNotReady,
  InvalidCursor,
  NotFound,
  PreconditionFailed,
  ScopeMissing,
  Unavailable,
  WebhookTargetRefused,
} from "../problems/Problem.ts"
import { NamedTime, TimestampOrNull } from "../Timestamp.ts"
import { NewWebhook, Webhook, WebhookPatch } from "./Webhook.ts"
import { About } from "../account/EndpointScope.ts"

const tagged = HttpApiSchema.WithHeaders(Webhook, { etag: Schema.String })

/** A rotated signing secret. Deliveries are signed with both secrets until the previous one expires. */
const RotatedSecret = Schema.Struct({
  signing_secret: Schema.String,
  previous_valid_until: TimestampOrNull,
}).annotate({ identifier: "RotatedSecret" })

const params = { handle: HandleParam }
const one = { ...params, id: WebhookId.annotate({ description: "The id of the resource." }) }

export class WebhookApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/webhooks", {
      params,
      query: paging,
      success: pageOf("webhooks", Webhook),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List the Webhooks of an Identity")
      .annotate(Tool, {
        name: "svc_webhook_list",
        effect: "read",
        columns: ["id", "status", "stopped_reason", "failing_since", "event_types", "url", "description"],
      }),
    HttpApiEndpoint.post("create", "/api/identities/:handle/webhooks", {
      params,
      payload: NewWebhook,
      success: HttpApiSchema.WithHeaders(
        Schema.Struct({ ...Webhook.fields, signing_secret: Schema.String }).pipe(HttpApiSchema.status(201)),
        located,
      ),
      error: [NotFound, IdentityNotReady, Conflict, ScopeMissing, WebhookTargetRefused, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Register a Webhook")
      .annotate(ShowsSecret, true)
      .annotate(Tool, {
        name: "svc_webhook_create",
        effect: "write",
        advice:
          "The receiver verifies deliveries with `signing_secret`, which is returned only once. Then call `svc_webhook_test`.",
      }),
    HttpApiEndpoint.get("read", "/api/identities/:handle/webhooks/:id", {
      params: one,
      success: tagged,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read one Webhook"),
    HttpApiEndpoint.patch("patch", "/api/identities/:handle/webhooks/:id", {
      params: one,
      headers: conditional,
      payload: [WebhookPatch, WebhookPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: tagged,
      error: [NotFound, IdentityNotReady, ScopeMissing, WebhookTargetRefused, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Change a Webhook with a merge patch")
      .annotate(Tool, { name: "svc_webhook_update", effect: "idempotent_write" }),
    HttpApiEndpoint.delete("remove", "/api/identities/:handle/webhooks/:id", {
      params: one,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Remove a Webhook and its delivery log")
      .annotate(Tool, { name: "svc_webhook_delete", effect: "destructive" }),
    HttpApiEndpoint.post("test", "/api/identities/:handle/webhooks/:id/test", {
      params: one,
      success: HttpApiSchema.WithHeaders(
        Schema.Struct({ delivery: Delivery }).pipe(HttpApiSchema.status(202)),
        located,
      ),
      error: [NotFound, IdentityNotReady, Conflict, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Send a test Event to a Webhook")
      .annotate(Tool, {
        name: "svc_webhook_test",
        effect: "write",
        advice: "Then read `svc_webhook_deliveries`.",
      }),
    HttpApiEndpoint.post("rotate", "/api/identities/:handle/webhook-secret/rotate", {
      params,
      success: RotatedSecret,
      error: [NotFound, IdentityNotReady, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Replace the signing secret")
      .annotate(ShowsSecret, true),
    HttpApiEndpoint.get("deliveries", "/api/identities/:handle/webhooks/:id/deliveries", {
      params: one,
      query: {
        status: Schema.optionalKey(DeliveryStatus.annotate({ description: "Only deliveries of this status." })),
        event_id: Schema.optionalKey(EventId.annotate({ description: "Only deliveries of this Event." })),
        ...paging,
      },
      success: pageOf("deliveries", Delivery),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the delivery log of a Webhook, newest first")
      .annotate(Tool, {
        name: "svc_webhook_deliveries",
        effect: "read",
        untrusted: ["deliveries"],
        columns: ["id", "created_at", "event_type", "status", "attempts", "next_attempt_at"],
      }),
    HttpApiEndpoint.get("request", "/api/identities/:handle/webhooks/:id/deliveries/:delivery_id/request", {
      params: { ...one, delivery_id: DeliveryId.annotate({ description: "The id of the delivery." }) },
      success: DeliveryRequest,
      error: [NotFound, ScopeMissing, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the request of a delivery"),
    HttpApiEndpoint.post("recover", "/api/identities/:handle/webhooks/:id/recover", {
      params: one,
      payload: Schema.Struct({ since: NamedTime }),
      success: HttpApiSchema.WithHeaders(
        Schema.Struct({
          queued: Schema.Int.annotate({
            description: "Number of queued deliveries, at most 1,000; call again for the rest.",
          }),
        }).pipe(HttpApiSchema.status(202)),
        located,
      ),
      error: [NotFound, IdentityNotReady, Conflict, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Redeliver every Event whose delivery failed since the given time"),
  )
  .annotateEndpoints(About, "webhook")
  .annotate(OpenApi.Description, "Signed deliveries of Events.") {}

/** Webhooks of an Identity: register, read, change, test, delete, and what was delivered. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization, ShowsSecret } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { Limit } from "../Paging.ts"
import { Tool } from "../mcp/Tool.ts"
import { conditional } from "../Precondition.ts"
import {
  Conflict,
  IdentityNotReady,
  NotFound,
  PreconditionFailed,
  Unavailable,
  WebhookTargetRefused,
} from "../problems/Problem.ts"
import { Timestamp } from "../Timestamp.ts"
import { Delivery, NewWebhook, Webhook, WebhookId, WebhookPatch } from "./Webhook.ts"

const tagged = HttpApiSchema.WithHeaders(Webhook, { etag: Schema.String })

/** Both secrets sign until the former one retires. */
export const RotatedSecret = Schema.Struct({
  signing_secret: Schema.String,
  previous_valid_until: Schema.NullOr(Timestamp),
}).annotate({ identifier: "RotatedSecret" })

export class WebhookApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/webhooks", {
      params: { handle: HandleParam },
      success: Schema.Struct({ webhooks: Schema.Array(Webhook) }),
      error: [NotFound, Unavailable],
    }).annotate(Tool, { name: "svc_webhook_list", effect: "read" }),
    HttpApiEndpoint.post("create", "/api/identities/:handle/webhooks", {
      params: { handle: HandleParam },
      payload: NewWebhook,
      success: HttpApiSchema.WithHeaders(
        Schema.Struct({ ...Webhook.fields, signing_secret: Schema.String }).pipe(HttpApiSchema.status(201)),
        { location: Schema.String },
      ),
      error: [NotFound, IdentityNotReady, WebhookTargetRefused, Unavailable],
    }).annotate(ShowsSecret, true),
    HttpApiEndpoint.get("read", "/api/identities/:handle/webhooks/:id", {
      params: { handle: HandleParam, id: WebhookId },
      success: tagged,
      error: [NotFound, Unavailable],
    }),
    HttpApiEndpoint.patch("patch", "/api/identities/:handle/webhooks/:id", {
      params: { handle: HandleParam, id: WebhookId },
      headers: conditional,
      payload: [WebhookPatch, WebhookPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: tagged,
      error: [NotFound, IdentityNotReady, WebhookTargetRefused, PreconditionFailed, Unavailable],
    }),
    HttpApiEndpoint.delete("remove", "/api/identities/:handle/webhooks/:id", {
      params: { handle: HandleParam, id: WebhookId },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Unavailable],
    }),
    HttpApiEndpoint.post("test", "/api/identities/:handle/webhooks/:id/test", {
      params: { handle: HandleParam, id: WebhookId },
      success: Schema.Struct({ delivery: Delivery }).pipe(HttpApiSchema.status(202)),
      error: [NotFound, IdentityNotReady, Conflict, Unavailable],
    }),
    HttpApiEndpoint.post("rotate", "/api/identities/:handle/webhook-secret/rotate", {
      params: { handle: HandleParam },
      success: RotatedSecret,
      error: [NotFound, IdentityNotReady, Unavailable],
    }).annotate(ShowsSecret, true),
    HttpApiEndpoint.get("deliveries", "/api/identities/:handle/webhooks/:id/deliveries", {
      params: { handle: HandleParam, id: WebhookId },
      query: { limit: Limit },
      success: Schema.Struct({ deliveries: Schema.Array(Delivery) }),
      error: [NotFound, Unavailable],
    }).annotate(Tool, { name: "svc_webhook_deliveries", effect: "read" }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "any") {}

/** Webhooks of an Identity: register, list, and what was delivered. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { Limit } from "../Paging.ts"
import { IdentityNotReady, NotFound, Unavailable, WebhookTargetRefused } from "../problems/Problem.ts"
import { Delivery, NewWebhook, Webhook, WebhookId } from "./Webhook.ts"

export class WebhookApi extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.get("list", "/api/identities/:handle/webhooks", {
      params: { handle: HandleParam },
      success: Schema.Struct({ webhooks: Schema.Array(Webhook) }),
      error: [NotFound, Unavailable],
    }),
    HttpApiEndpoint.post("create", "/api/identities/:handle/webhooks", {
      params: { handle: HandleParam },
      payload: NewWebhook,
      success: HttpApiSchema.WithHeaders(
        Schema.Struct({ ...Webhook.fields, signing_secret: Schema.String }).pipe(HttpApiSchema.status(201)),
        { location: Schema.String },
      ),
      error: [NotFound, IdentityNotReady, WebhookTargetRefused, Unavailable],
    }),
    HttpApiEndpoint.get("deliveries", "/api/identities/:handle/webhooks/:id/deliveries", {
      params: { handle: HandleParam, id: WebhookId },
      query: { limit: Limit },
      success: Schema.Struct({ deliveries: Schema.Array(Delivery) }),
      error: [NotFound, Unavailable],
    }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "any") {}

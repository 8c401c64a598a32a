/** The A2A Card of an Identity, and its public profile. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { conditional } from "../Precondition.ts"
import { IdentityNotReady, NotFound, PreconditionFailed, RateLimited, Unavailable } from "../problems/Problem.ts"
import { Tool } from "../mcp/Tool.ts"
import { Card, CardPatch, Profile } from "./Card.ts"

const tagged = HttpApiSchema.WithHeaders(Card, { etag: Schema.String })

export class CardApi extends HttpApiGroup.make("cards")
  .add(
    HttpApiEndpoint.get("read", "/api/identities/:handle/card", {
      params: { handle: HandleParam },
      success: tagged,
      error: [NotFound, Unavailable],
    }).annotate(Tool, { name: "svc_card_get", effect: "read" }),
    HttpApiEndpoint.patch("patch", "/api/identities/:handle/card", {
      params: { handle: HandleParam },
      headers: conditional,
      payload: [CardPatch, CardPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: tagged,
      error: [NotFound, IdentityNotReady, PreconditionFailed, Unavailable],
    }).annotate(Tool, { name: "svc_card_update", effect: "idempotent_write" }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "any") {}

export class ProfileApi extends HttpApiGroup.make("profiles").add(
  HttpApiEndpoint.get("read", "/api/profiles/:handle", {
    params: { handle: HandleParam },
    success: Profile,
    error: [NotFound, RateLimited, Unavailable],
  }),
) {}

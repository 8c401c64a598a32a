/** The A2A Card of an Identity, and its public profile. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AddressLimit, onIdentity, open, Tagged } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { conditional } from "../Precondition.ts"
import { IdentityNotReady, NotFound, PreconditionFailed, RateLimited, Unavailable } from "../problems/Problem.ts"
import { Tool } from "../mcp/Tool.ts"
import { Card, CardPatch, Profile } from "./Card.ts"
import { About } from "../account/EndpointScope.ts"

const tagged = HttpApiSchema.WithHeaders(Card, { etag: Schema.String })

export class CardApi extends HttpApiGroup.make("cards")
  .add(
    HttpApiEndpoint.get("read", "/api/identities/:handle/card", {
      params: { handle: HandleParam },
      success: tagged,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the A2A Card")
      .annotate(Tool, {
        name: "svc_card_get",
        effect: "read",
        advice: "It describes the Identity to others.",
      }),
    HttpApiEndpoint.patch("patch", "/api/identities/:handle/card", {
      params: { handle: HandleParam },
      headers: conditional,
      payload: [CardPatch, CardPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: tagged,
      error: [NotFound, IdentityNotReady, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Change the A2A Card with a merge patch")
      .annotate(Tool, {
        name: "svc_card_update",
        effect: "idempotent_write",
        advice: "Lists are replaced.",
      }),
  )
  .annotateEndpoints(About, "card")
  .annotate(OpenApi.Description, "The A2A Card of an Identity.") {}

export class ProfileApi extends HttpApiGroup.make("profiles")
  .add(
    HttpApiEndpoint.get("read", "/api/profiles/:handle", {
      params: { handle: HandleParam },
      success: Profile,
      error: [NotFound, RateLimited, Unavailable],
    })
      .pipe(open)
      .annotate(AddressLimit, "profile")
      .annotate(Tagged, true)
      .annotate(OpenApi.Summary, "Read a public profile"),
  )
  .annotate(OpenApi.Description, "The public card of an Identity.") {}

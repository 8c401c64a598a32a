/** Operations on Grants: the apps that an account holder has connected. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { callers, Tagged } from "../account/Policy.ts"
import { About } from "../account/EndpointScope.ts"
import { Uuid } from "../IdSchemas.ts"
import { pageOf, paging } from "../Paging.ts"
import { conditional } from "../Precondition.ts"
import {
  InvalidCursor,
  InvalidRequest,
  NotFound,
  PreconditionFailed,
  ScopeUnknown,
  Unavailable,
} from "../problems/Problem.ts"
import { Grant, GrantPatch } from "./Grant.ts"

const params = { id: Uuid.annotate({ description: "The id of the resource." }) }

export class GrantApi extends HttpApiGroup.make("grants")
  .add(
    HttpApiEndpoint.get("list", "/api/grants", {
      query: paging,
      success: pageOf("grants", Grant),
      error: [InvalidCursor, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "List connected apps, newest first"),
    HttpApiEndpoint.get("read", "/api/grants/:id", {
      params,
      success: Grant,
      error: [NotFound, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Read one Grant")
      .annotate(Tagged, true),
    HttpApiEndpoint.patch("update", "/api/grants/:id", {
      params,
      headers: conditional,
      payload: [GrantPatch, GrantPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: Grant,
      error: [NotFound, ScopeUnknown, InvalidRequest, PreconditionFailed, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "Change an app's scopes, Identities, networks or expiry"),
    HttpApiEndpoint.delete("revoke", "/api/grants/:id", {
      params,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Revoke the access of an app"),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Apps that the account holder connected by OAuth, and their rights.") {}

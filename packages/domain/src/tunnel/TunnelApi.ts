/** Reading and setting the Tunnel of an Identity. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { AdminRequired, IdentityNotReady, NotFound, Unavailable } from "../problems/Problem.ts"
import { Tunnel, TunnelPatch } from "./Tunnel.ts"

export class TunnelApi extends HttpApiGroup.make("tunnels")
  .add(
    HttpApiEndpoint.get("read", "/api/identities/:handle/tunnel", {
      params: { handle: HandleParam },
      success: Tunnel,
      error: [NotFound, Unavailable],
    }),
    HttpApiEndpoint.patch("patch", "/api/identities/:handle/tunnel", {
      params: { handle: HandleParam },
      payload: [TunnelPatch, TunnelPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: Tunnel,
      error: [NotFound, IdentityNotReady, AdminRequired, Unavailable],
    }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "any") {}

/** Operations of the Tunnel of an Identity. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { always, onIdentity, onIdentityExcept } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { conditional } from "../Precondition.ts"
import {
  AdminRequired,
  IdentityNotReady,
  InvalidRequest,
  NotFound,
  PreconditionFailed,
  Unavailable,
} from "../problems/Problem.ts"
import { Tunnel, TunnelPatch } from "./Tunnel.ts"
import { About } from "../account/EndpointScope.ts"

const tagged = HttpApiSchema.WithHeaders(Tunnel, { etag: Schema.String })

export class TunnelApi extends HttpApiGroup.make("tunnels")
  .add(
    HttpApiEndpoint.get("read", "/api/identities/:handle/tunnel", {
      params: { handle: HandleParam },
      success: tagged,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read the Tunnel: its address, links, usage and settings")
      .annotate(Tool, {
        name: "svc_tunnel_get",
        effect: "read",
        advice: "`svc tunnel <port>` on the agent's machine connects it.",
      }),
    HttpApiEndpoint.patch("patch", "/api/identities/:handle/tunnel", {
      params: { handle: HandleParam },
      headers: conditional,
      payload: [TunnelPatch, TunnelPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: tagged,
      error: [InvalidRequest, NotFound, IdentityNotReady, AdminRequired, PreconditionFailed, Unavailable],
    })
      .pipe(
        onIdentityExcept<TunnelPatch>("An Identity Key cannot change who may reach the Tunnel.", {
          allowed_networks: always,
          basic_auth: always,
          callers: always,
        }),
      )
      .annotate(OpenApi.Summary, "Change the settings of the Tunnel"),
  )
  .annotateEndpoints(About, "tunnel")
  .annotate(OpenApi.Description, "The public address of an agent's local port.") {}

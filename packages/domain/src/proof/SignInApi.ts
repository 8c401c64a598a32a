/** Operations of signing in as the agent at relying parties of OpenID Connect. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { About, Issues } from "../account/EndpointScope.ts"
import { Confidential, onIdentity, ShowsSecret, Tagged } from "../account/Policy.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { Uuid } from "../IdSchemas.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, paging } from "../Paging.ts"
import { conditional } from "../Precondition.ts"
import {
  Conflict,
  IdentityNotReady,
  InvalidCursor,
  MailPaused,
  NotFound,
  PreconditionFailed,
  ScopeExceeds,
  SignInInvalid,
  Unavailable,
} from "../problems/Problem.ts"
import { AgentSignIn, NewSignIn, StartedSignIn } from "./SignIn.ts"

const params = { handle: HandleParam }
const one = { handle: HandleParam, id: Uuid.annotate({ description: "The id of the resource." }) }

export class AgentSignInApi extends HttpApiGroup.make("agent_sign_ins")
  .add(
    HttpApiEndpoint.post("create", "/api/identities/:handle/sign-ins", {
      params,
      payload: NewSignIn,
      success: StartedSignIn.pipe(HttpApiSchema.status(201)),
      error: [NotFound, IdentityNotReady, SignInInvalid, MailPaused, ScopeExceeds, Conflict, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Sign in at a site as the Identity")
      .annotate(Issues, true)
      .annotate(ShowsSecret, true)
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_sign_in_create",
        // An equal call after the approval must run.
        effect: "idempotent_write",
        external: true,
        advice: "Open `redirect_url` within a minute. `awaiting_approval`: repeat after a person approved.",
      }),
    HttpApiEndpoint.get("list", "/api/identities/:handle/sign-ins", {
      params,
      query: paging,
      success: pageOf("sign_ins", AgentSignIn),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List the sign-ins of an Identity, newest first"),
    HttpApiEndpoint.get("read", "/api/identities/:handle/sign-ins/:id", {
      params: one,
      success: AgentSignIn,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Read one sign-in")
      .annotate(Tagged, true),
    HttpApiEndpoint.post("approve", "/api/identities/:handle/sign-ins/:id/approve", {
      params: one,
      success: AgentSignIn,
      error: [NotFound, Conflict, Unavailable],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Approve a sign-in, so that the agent can post its request again"),
    HttpApiEndpoint.post("refuse", "/api/identities/:handle/sign-ins/:id/refuse", {
      params: one,
      success: AgentSignIn,
      error: [NotFound, Conflict, Unavailable],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Refuse a sign-in"),
    HttpApiEndpoint.delete("end", "/api/identities/:handle/sign-ins/:id", {
      params: one,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "End a sign-in: its code and its access token are no longer valid"),
  )
  .annotateEndpoints(About, "proof")
  .annotate(OpenApi.Description, "Signing in at sites as the Identity.") {}

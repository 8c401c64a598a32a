/** "Account and authentication" and "API keys" of interface.md, as far as sign-up, sign-in and Admin Keys go. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import {
  InviteRequired,
  MagicLinkInvalid,
  NotFound,
  RateLimited,
  TosNotAccepted,
  Unavailable,
} from "../problems/Problem.ts"
import {
  ApiKey,
  CallerView,
  MagicLinkAnswer,
  MagicLinkRequest,
  Org,
  Registration,
  Session,
  TermsStatus,
  Uuid,
} from "./Account.ts"
import { Line, Text } from "../Text.ts"
import { Access, Authorization, ShowsSecret, Tagged } from "./Authorization.ts"

/** Sign-up and sign-in take no credential. */
export class SignInApi extends HttpApiGroup.make("sign_in").add(
  HttpApiEndpoint.post("requestMagicLink", "/api/auth/magic-link", {
    payload: MagicLinkRequest,
    success: MagicLinkAnswer.pipe(HttpApiSchema.status(202)),
    error: [InviteRequired, TosNotAccepted, RateLimited, Unavailable],
  }),
  HttpApiEndpoint.post("consumeMagicLink", "/api/auth/magic-link/consume", {
    payload: Schema.Struct({ token: Text.check(Schema.isMaxLength(200)) }),
    success: Schema.Struct({ session_token: Schema.String, session: Session, org: Org }),
    error: [MagicLinkInvalid, Unavailable],
  }),
  HttpApiEndpoint.get("registration", "/api/auth/registration", { success: Registration }),
) {}

export class SessionApi extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.get("read", "/api/auth/session", {
      success: Schema.Struct({ session: Schema.NullOr(Session), org: Org, tos: TermsStatus }),
    }).annotate(Access, "any"),
    HttpApiEndpoint.delete("revoke", "/api/auth/session", {
      success: HttpApiSchema.NoContent,
      error: Unavailable,
    }).annotate(Access, "session"),
    HttpApiEndpoint.get("whoami", "/api/auth/whoami", {
      success: Schema.Struct({ org: Org, caller: CallerView }),
    }).annotate(Access, "any"),
  )
  .middleware(Authorization) {}

/** The plaintext is in this answer and nowhere else. */
export const MintedKey = Schema.Struct({ key: Schema.String, api_key: ApiKey }).annotate({ identifier: "MintedKey" })

export class ApiKeyApi extends HttpApiGroup.make("api_keys")
  .add(
    HttpApiEndpoint.get("list", "/api/keys", {
      success: Schema.Struct({ api_keys: Schema.Array(ApiKey) }),
      error: Unavailable,
    }),
    HttpApiEndpoint.post("create", "/api/keys", {
      payload: Schema.Struct({
        name: Line(100),
      }),
      success: HttpApiSchema.WithHeaders(MintedKey.pipe(HttpApiSchema.status(201)), { location: Schema.String }),
      error: Unavailable,
    }).annotate(ShowsSecret, true),
    HttpApiEndpoint.get("read", "/api/keys/:id", {
      params: { id: Uuid },
      success: ApiKey,
      error: [NotFound, Unavailable],
    }).annotate(Tagged, true),
    HttpApiEndpoint.delete("revoke", "/api/keys/:id", {
      params: { id: Uuid },
      success: HttpApiSchema.NoContent,
      error: [NotFound, Unavailable],
    }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "org") {}

/**
 * Operations of interface.md "Account and authentication" and "API keys" that concern sign-up, sign-in and Admin Keys.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Uuid } from "../IdSchemas.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, paging, wholePaging } from "../Paging.ts"
import {
  Conflict,
  IdentityNotReady,
  InvalidCursor,
  InvalidRequest,
  InviteRequired,
  KeyQuotaExhausted,
  KeyReplaced,
  MagicLinkInvalid,
  MailRelayUnavailable,
  NotFound,
  PreconditionFailed,
  RateLimited,
  ScopeExceeds,
  ScopeUnknown,
  TosNotAccepted,
  Unavailable,
} from "../problems/Problem.ts"
import {
  ApiKey,
  CallerView,
  ListedSession,
  MagicLinkAnswer,
  MagicLinkRequest,
  Org,
  Registration,
  Session,
  TermsStatus,
} from "./Account.ts"
import { conditional, located } from "../Precondition.ts"
import { Line, Text } from "../Text.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { requestedRights } from "./KeyRights.ts"
import { AddressLimit, callers, Confidential, onIdentity, open, ShowsSecret, Tagged } from "./Policy.ts"
import { About, Unscoped } from "./EndpointScope.ts"

/** Sign-up and sign-in take no credential. */
export class SignInApi extends HttpApiGroup.make("sign_in")
  .add(
    HttpApiEndpoint.post("requestMagicLink", "/api/auth/magic-link", {
      payload: MagicLinkRequest,
      success: HttpApiSchema.WithHeaders(MagicLinkAnswer.pipe(HttpApiSchema.status(202)), located),
      error: [InviteRequired, TosNotAccepted, RateLimited, MailRelayUnavailable, Unavailable],
    })
      .pipe(open)
      .annotate(AddressLimit, "magic_link")
      .annotate(OpenApi.Summary, "Send a magic link for sign-up or sign-in")
      .annotate(Confidential, true),
    HttpApiEndpoint.post("consumeMagicLink", "/api/auth/magic-link/consume", {
      payload: Schema.Struct({ token: Text.check(Schema.isMaxLength(200)) }),
      success: Schema.Struct({ session_token: Schema.String, session: Session, org: Org }),
      error: [MagicLinkInvalid, Unavailable],
    })
      .pipe(open)
      .annotate(OpenApi.Summary, "Exchange a magic link's token for a session")
      .annotate(Confidential, true),
    HttpApiEndpoint.get("registration", "/api/auth/registration", { success: Registration })
      .pipe(open)
      .annotate(OpenApi.Summary, "Read whether sign-up is open"),
  )
  .annotate(OpenApi.Description, "Sign-up and sign-in by magic link, without a credential.") {}

export class SessionApi extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.get("read", "/api/auth/session", {
      success: Schema.Struct({ session: Schema.NullOr(Session), org: Org, tos: TermsStatus }),
    })
      .pipe(callers("any"))
      .annotate(OpenApi.Summary, "Read the session, the Org and its Terms status"),
    HttpApiEndpoint.delete("revoke", "/api/auth/session", {
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [PreconditionFailed, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "End the session"),
    HttpApiEndpoint.get("list", "/api/auth/sessions", {
      query: paging,
      success: pageOf("sessions", ListedSession),
      error: [InvalidCursor, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "List the sessions of the account, newest first"),
    HttpApiEndpoint.delete("revokeOne", "/api/auth/sessions/:id", {
      params: { id: Uuid.annotate({ description: "The id of the resource." }) },
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "End one session"),
    HttpApiEndpoint.delete("revokeAll", "/api/auth/sessions", {
      headers: conditional,
      query: {
        apps: Schema.optionalKey(
          Schema.Literals(["end", "keep"]).annotate({
            description: "`end` also revokes the access of every connected app.",
          }),
        ),
      },
      success: HttpApiSchema.NoContent,
      error: [PreconditionFailed, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "Sign out everywhere: end every session, including this one"),
    HttpApiEndpoint.get("whoami", "/api/auth/whoami", {
      success: Schema.Struct({ org: Org, caller: CallerView }),
    })
      .pipe(callers("any"))
      .annotate(OpenApi.Summary, "Describe the caller's credential")
      .annotate(Unscoped, true)
      .annotate(Tool, {
        name: "svc_whoami",
        effect: "read",
        advice:
          "`handles` are the Identities that you may act on (null: all), `scopes` what you may do there (`*`: everything).",
      }),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "The current session and the caller.") {}

/** A new key. Only this response contains the key's plaintext. */
export const MintedKey = Schema.Struct({ key: Schema.String, api_key: ApiKey }).annotate({ identifier: "MintedKey" })

const params = { id: Uuid.annotate({ description: "The id of the resource." }) }

/** By default the key has the scopes, expiry and networks of its creator. */
const NewKey = Schema.Struct({ name: Line(100), ...requestedRights })
/** The body is optional. */
const NoBody = Schema.Undefined
const Rotation = Schema.Struct({
  overlap_seconds: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 604_800 })).annotate({
      description: "How long the old key stays valid, in seconds; default: one day, maximum: one week.",
    }),
  ),
})
const minted = HttpApiSchema.WithHeaders(MintedKey.pipe(HttpApiSchema.status(201)), located)
const refusedKeys = [InvalidRequest, ScopeUnknown, ScopeExceeds, KeyQuotaExhausted, Unavailable] as const

export class ApiKeyApi extends HttpApiGroup.make("api_keys")
  .add(
    HttpApiEndpoint.get("list", "/api/keys", {
      query: wholePaging,
      success: pageOf("api_keys", ApiKey),
      error: [InvalidCursor, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "List keys that are not revoked, newest first"),
    HttpApiEndpoint.post("create", "/api/keys", {
      payload: NewKey,
      success: minted,
      error: refusedKeys,
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Create an Admin Key")
      .annotate(ShowsSecret, true),
    HttpApiEndpoint.post("createForIdentity", "/api/identities/:handle/keys", {
      params: { handle: HandleParam },
      payload: NewKey,
      success: minted,
      error: [...refusedKeys, NotFound, IdentityNotReady],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Create a further Identity Key")
      .annotate(ShowsSecret, true),
    HttpApiEndpoint.post("rotate", "/api/keys/:id/rotate", {
      params,
      payload: [NoBody, Rotation],
      success: minted,
      error: [NotFound, Conflict, ScopeExceeds, KeyReplaced, KeyQuotaExhausted, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Replace a key with one of the same rights")
      .annotate(ShowsSecret, true),
    HttpApiEndpoint.get("read", "/api/keys/:id", {
      params,
      success: ApiKey,
      error: [NotFound, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Read one key")
      .annotate(Tagged, true),
    HttpApiEndpoint.delete("revoke", "/api/keys/:id", {
      params,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Revoke a key"),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Admin Keys and Identity Keys, with their scopes, expiry and networks.") {}

/**
 * Who is calling, and what an endpoint demands of it. Each credentialed endpoint carries one {@link Access}
 * annotation; the middleware judges the credential by it before the handler runs, so a handler that asks for
 * {@link Caller} has been let in (interface.md "Authentication").
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import {
  AccountDeleting,
  AdminRequired,
  Conflict,
  ForeignIdentity,
  IdempotencyKeyInProgress,
  IdempotencyKeyReused,
  InvalidRequest,
  OrgScopeRequired,
  RateLimited,
  SessionRequired,
  Unauthenticated,
  Unavailable,
} from "../problems/Problem.ts"
import type { CredentialKind, Org } from "./Account.ts"
import type { Policy } from "./OrgProtocol.ts"

/** The credential of a call, resolved; the Org is never named otherwise. */
export interface CallerInfo {
  readonly kind: CredentialKind
  readonly org: Org
  /** Id of the session for a session, of the key for a key. */
  readonly credentialId: string
  readonly keyName: string | null
  /** The one Identity an Identity Key may act on. */
  readonly identity: { readonly id: string; readonly handle: string; readonly canonical: string } | null
  readonly session: { readonly expiresAt: Date; readonly createdAt: Date } | null
}

export class Caller extends Context.Service<Caller, CallerInfo>()("@svc/domain/account/Caller") {}

/**
 * `any`: every credential, an Identity Key only where the path names its own Identity.
 * `org`: an Admin Key or a session. `session`: the account holder. `admin`: like `org`, refused as `admin_required`.
 */
export type AccessLevel = "any" | "org" | "session" | "admin"

export class Access extends Context.Service<Access, AccessLevel>()("@svc/domain/account/Access") {}

/** A budget of its own that a call of the endpoint takes from, besides the one of all calls. */
export class CallPolicy extends Context.Service<CallPolicy, Exclude<Policy, "calls">>()(
  "@svc/domain/account/CallPolicy",
) {}

/** The answer carries a secret that is shown once, so it is not kept for a repeat with the same `Idempotency-Key`. */
export const ShowsSecret = Context.Reference<boolean>("@svc/domain/account/ShowsSecret", { defaultValue: () => false })

/** A single resource without a version: its entity tag is made of its representation. */
export const Tagged = Context.Reference<boolean>("@svc/domain/account/Tagged", { defaultValue: () => false })

export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Caller; requires: never }>()(
  "@svc/domain/account/Authorization",
  {
    requiredForClient: true,
    security: { api_key: HttpApiSecurity.bearer },
    error: [
      Unauthenticated,
      AccountDeleting,
      OrgScopeRequired,
      ForeignIdentity,
      SessionRequired,
      AdminRequired,
      RateLimited,
      IdempotencyKeyInProgress,
      IdempotencyKeyReused,
      Conflict,
      InvalidRequest,
      Unavailable,
    ],
  },
) {}

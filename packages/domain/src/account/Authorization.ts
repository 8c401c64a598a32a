/**
 * Who is calling and on what it may act, as a handler gets it: {@link Caller}, {@link Subject} and {@link Realm} are
 * proofs that the endpoint's policy (`Policy.ts`) was judged, and only the middlewares here provide them. A handler that
 * acts on an Identity asks for one, so it does not compile on an endpoint whose policy resolves none.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { IdentityRef } from "../IdentityRef.ts"
import {
  AccountDeleting,
  AdminRequired,
  Conflict,
  ForeignIdentity,
  IdempotencyKeyInProgress,
  IdempotencyKeyReused,
  InvalidRequest,
  NotFound,
  OrgScopeRequired,
  RateLimited,
  SessionRequired,
  Unauthenticated,
  Unavailable,
} from "../problems/Problem.ts"
import type { CredentialKind, Org } from "./Account.ts"
import type { By } from "./By.ts"

/** The credential of a call, resolved; the Org is never named otherwise. */
export interface CallerInfo {
  readonly kind: CredentialKind
  readonly org: Org
  /** Id of the session for a session, of the key for a key. */
  readonly credentialId: string
  readonly keyName: string | null
  /** The one Identity an Identity Key may act on. */
  readonly identity: IdentityRef | null
  readonly session: { readonly expiresAt: Date; readonly createdAt: Date } | null
}

/** The caller of the request at hand. */
export interface CallerOfRequest extends CallerInfo {
  /** Who caused what the request changes. */
  readonly by: By
}

export class Caller extends Context.Service<Caller, CallerOfRequest>()("@svc/domain/account/Caller") {}

/** The Identity that a request names and its caller may act on. */
export interface SubjectInfo extends IdentityRef {
  readonly orgId: string
  /** On whose behalf it is acted on. */
  readonly by: By
}

export class Subject extends Context.Service<Subject, SubjectInfo>()("@svc/domain/account/Subject") {}

/** A part of the account: the Org's own where `subject` is null, else what belongs to one Identity. */
export interface RealmInfo {
  readonly orgId: string
  readonly subject: SubjectInfo | null
}

export class Realm extends Context.Service<Realm, RealmInfo>()("@svc/domain/account/Realm") {}

const security = { api_key: HttpApiSecurity.bearer }
const refusals = [
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
] as const

/** No credential is needed. The middleware does nothing; it stands for the decision. */
export class Open extends HttpApiMiddleware.Service<Open>()("@svc/domain/account/Open") {}

/** The policy names no Identity. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Caller; requires: never }>()(
  "@svc/domain/account/Authorization",
  { requiredForClient: true, security, error: refusals },
) {}

/** The policy names an Identity, which exists and is the caller's to act on. */
export class SubjectAuthorization extends HttpApiMiddleware.Service<
  SubjectAuthorization,
  { provides: Caller | Subject; requires: never }
>()("@svc/domain/account/SubjectAuthorization", {
  requiredForClient: true,
  security,
  error: [...refusals, NotFound],
}) {}

/** The policy names the Org or one Identity of it. */
export class RealmAuthorization extends HttpApiMiddleware.Service<
  RealmAuthorization,
  { provides: Caller | Realm; requires: never }
>()("@svc/domain/account/RealmAuthorization", {
  requiredForClient: true,
  security,
  error: [...refusals, NotFound],
}) {}

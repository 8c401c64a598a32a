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
  AuditUnavailable,
  Conflict,
  ForeignIdentity,
  IdempotencyKeyInProgress,
  IdempotencyKeyReused,
  IdentityNotGranted,
  InvalidRequest,
  KeyExpired,
  GrantRevoked,
  NetworkRefused,
  NotFound,
  OrgScopeRequired,
  RateLimited,
  ScopeMissing,
  SessionRequired,
  Unauthenticated,
  Unavailable,
} from "../problems/Problem.ts"
import type { CredentialKind, Org } from "./Account.ts"
import type { Initiator } from "./Initiator.ts"
import type { Networks } from "./Networks.ts"
import type { Scopes } from "./Scope.ts"

/** The credential of a call, resolved; the Org is never named otherwise. */
export interface CallerInfo {
  readonly kind: CredentialKind
  readonly org: Org
  /** Id of the session for a session, of the key for a key, of the grant for a grant. */
  readonly credentialId: string
  readonly keyName: string | null
  /** What it may do. A session may do everything. */
  readonly scopes: Scopes
  /** The Identities it may act on: one of an Identity Key, those that a grant names; null for the whole Org. */
  readonly identities: ReadonlyArray<IdentityRef> | null
  /** Allowed networks; null for any. */
  readonly networks: Networks | null
  /** When it ends by itself; null for never. A session's end is its own. */
  readonly expiresAt: Date | null
  /** Of a grant: which, and the app that it was given to. */
  readonly grant: { readonly id: string; readonly client: string } | null
  readonly session: { readonly expiresAt: Date; readonly createdAt: Date } | null
}

/** Whether a credential may act on the Identity of that canonical name. */
export const mayActOn = ({ identities }: Pick<CallerInfo, "identities">, canonical: string): boolean =>
  identities === null || identities.some((one) => one.canonical === canonical)

/** The one Identity that a credential may act on; null where it may act on several, or on all of the Org. */
export const soleOf = ({ identities }: Pick<CallerInfo, "identities">): IdentityRef | null =>
  identities?.length === 1 ? identities[0]! : null

/** The caller of the request at hand. */
export interface CallerOfRequest extends CallerInfo {
  /** The initiator of the request's changes. */
  readonly by: Initiator
}

export class Caller extends Context.Service<Caller, CallerOfRequest>()("@svc/domain/account/Caller") {}

/** The Identity that a request names and its caller may act on. */
export interface SubjectInfo extends IdentityRef {
  readonly orgId: string
  /** On whose behalf it is acted on. */
  readonly by: Initiator
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
  KeyExpired,
  GrantRevoked,
  AccountDeleting,
  OrgScopeRequired,
  ForeignIdentity,
  IdentityNotGranted,
  ScopeMissing,
  NetworkRefused,
  SessionRequired,
  AdminRequired,
  RateLimited,
  IdempotencyKeyInProgress,
  IdempotencyKeyReused,
  Conflict,
  InvalidRequest,
  Unavailable,
  AuditUnavailable,
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

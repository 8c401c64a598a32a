/**
 * The caller and the target of a request. {@link Caller}, {@link Subject} and {@link Realm} prove that the endpoint's
 * policy (`Policy.ts`) was checked: only the middlewares of this module provide them. A handler that needs one of them
 * does not compile on an endpoint whose policy does not resolve it.
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

/** The resolved credential of a request. It is the only source of the Org. */
export interface CallerInfo {
  readonly kind: CredentialKind
  readonly org: Org
  /** Id of the session, the key or the grant. */
  readonly credentialId: string
  readonly keyName: string | null
  /** Granted scopes. A session has all of them. */
  readonly scopes: Scopes
  /** Identities that the credential may act on; null for the whole Org. */
  readonly identities: ReadonlyArray<IdentityRef> | null
  /** Networks from which it may be used; null for no restriction. */
  readonly networks: Networks | null
  /** When the credential expires; null if it does not. The expiry of a session is stored with the session. */
  readonly expiresAt: Date | null
  /** The grant and its app; null for other credentials. */
  readonly grant: { readonly id: string; readonly client: string } | null
  readonly session: { readonly expiresAt: Date; readonly createdAt: Date } | null
}

/** Returns whether the credential may act on the Identity with this canonical Handle. */
export const mayActOn = ({ identities }: Pick<CallerInfo, "identities">, canonical: string): boolean =>
  identities === null || identities.some((one) => one.canonical === canonical)

/** Returns the Identity of a credential that is bound to a single one; null otherwise. */
export const soleOf = ({ identities }: Pick<CallerInfo, "identities">): IdentityRef | null =>
  identities?.length === 1 ? identities[0]! : null

/** The caller of the current request. */
export interface CallerOfRequest extends CallerInfo {
  /** The initiator of the request's changes. */
  readonly by: Initiator
}

export class Caller extends Context.Service<Caller, CallerOfRequest>()("@svc/domain/account/Caller") {}

/** The Identity that a request names, after the check that its caller may act on it. */
export interface SubjectInfo extends IdentityRef {
  readonly orgId: string
  /** The initiator of changes to the Identity. */
  readonly by: Initiator
}

export class Subject extends Context.Service<Subject, SubjectInfo>()("@svc/domain/account/Subject") {}

/**
 * The part of the account that a request names: the Org's own data if `subject` is null, otherwise the data of one
 * Identity.
 */
interface RealmInfo {
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

/** Marks an endpoint that needs no credential. The middleware itself does nothing. */
export class Open extends HttpApiMiddleware.Service<Open>()("@svc/domain/account/Open") {}

/** Provides the caller for policies that name no Identity. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Caller; requires: never }>()(
  "@svc/domain/account/Authorization",
  { requiredForClient: true, security, error: refusals },
) {}

/** Provides the Identity that the policy names, after checking that it exists and that the caller may act on it. */
export class SubjectAuthorization extends HttpApiMiddleware.Service<
  SubjectAuthorization,
  { provides: Caller | Subject; requires: never }
>()("@svc/domain/account/SubjectAuthorization", {
  requiredForClient: true,
  security,
  error: [...refusals, NotFound],
}) {}

/** Provides the Org or the Identity that the policy names. */
export class RealmAuthorization extends HttpApiMiddleware.Service<
  RealmAuthorization,
  { provides: Caller | Realm; requires: never }
>()("@svc/domain/account/RealmAuthorization", {
  requiredForClient: true,
  security,
  error: [...refusals, NotFound],
}) {}

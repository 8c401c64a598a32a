/**
 * The policy of an endpoint: who may call it and where the request names its Identity. The policy is one value on the
 * endpoint. It is evaluated once, before the handler (`PolicyEvaluation.ts`), and the OpenAPI document and the list of
 * tools read it as well. {@link open}, {@link callers}, {@link onIdentity} and {@link inRealm} attach it together with
 * the middleware that provides its proofs, so that the two always match.
 */
import { Context } from "effect"
import type { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware } from "effect/http-api"
import { Authorization, Open, RealmAuthorization, SubjectAuthorization } from "./Authorization.ts"
import type { Policy as Budget } from "./OrgProtocol.ts"

/**
 * `public`: everyone, without a credential. `any`: every credential; an Identity Key for its own Identity only. `org`:
 * an Admin Key or a session. `admin`: the same, but the rejection is `admin_required`. `session`: the account holder.
 */
export type Scope = "public" | "any" | "org" | "admin" | "session"

/** A kind of resource that belongs to an Identity or the Org and is addressed by its own id. */
export type Resource = "Event"

/** The place in a request that names its Identity: a resource, the path, the query or the body. */
type Naming =
  | { readonly _tag: "Nowhere" }
  /** A Handle in the path, or an optional one in the query. */
  | { readonly _tag: "Path" | "Query"; readonly member: string }
  /** An optional Handle in the decoded body. */
  | { readonly _tag: "Body"; readonly handleOf: (body: unknown) => string | undefined }
  /** The id of a resource in the path. */
  | { readonly _tag: "Resource"; readonly resource: Resource; readonly member: string }

/**
 * Members of a body that need more rights. An Identity Key and an app are rejected (`admin_required`); every other
 * credential needs the `admin` scope of the capability (`scope_missing`).
 */
interface Reserved {
  /** Returns for each member whether the value is reserved. */
  readonly members: Readonly<Record<string, (value: unknown) => boolean>>
  readonly detail: string
}

export interface EndpointPolicy {
  readonly scope: Scope
  /** Explains a rejected Identity Key why it is rejected, if the general sentence does not. */
  readonly because?: string
  readonly names: Naming
  readonly reserved: Reserved | undefined
  /** The proof that the handler receives besides the caller: an Identity, or a part of the account. */
  readonly proves: "caller" | "subject" | "realm"
  /** Whether the response only contains what the caller may act on, so that a grant for some Identities may call it. */
  readonly filtered: boolean
}

export class Policy extends Context.Service<Policy, EndpointPolicy>()("@svc/domain/account/Policy") {}

/** Returns the policy. An endpoint without a policy would be open to everyone, so serving one is a defect. */
export const policyOf = (endpoint: {
  readonly identifier: string
  readonly annotations: Context.Context<never>
}): EndpointPolicy => {
  const policy = Context.getOrUndefined(endpoint.annotations, Policy)
  if (policy === undefined) throw new Error(`the endpoint ${endpoint.identifier} has no policy`)
  return policy
}

const nowhere: Naming = { _tag: "Nowhere" }
const plain = { names: nowhere, reserved: undefined, proves: "caller", filtered: false } as const

/** Attaches a middleware and the policy that it evaluates. The return type is the library's own, for any endpoint. */
const attach =
  <I extends HttpApiMiddleware.AnyId, S>(middleware: Context.Key<I, S>, policy: EndpointPolicy) =>
  <E extends HttpApiEndpoint.Constraint>(endpoint: E) =>
    (endpoint as unknown as HttpApiEndpoint.Top)
      .middleware(middleware)
      .annotate(Policy, policy) as unknown as HttpApiEndpoint.AddMiddleware<E, I>

/** Everyone may call it, without a credential. */
export const open = attach(Open, { ...plain, scope: "public" })

/**
 * It concerns the Org or the caller; the handler receives no Identity. `because` explains to a rejected Identity Key
 * why it is rejected.
 */
export const callers = (scope: Exclude<Scope, "public">, because?: string) =>
  attach(Authorization, { ...plain, scope, ...(because === undefined ? {} : { because }) })

/** It concerns the Org, and its response only contains what the credential may act on. */
export const callersWithin = (scope: Exclude<Scope, "public">) =>
  attach(Authorization, { ...plain, scope, filtered: true })

type HasHandle = { readonly path: `${string}/:handle${string}` }
type HasBody<Body> = { readonly "~Payload": { readonly Type: Body } }

/** It acts on the Identity in the path member `:handle`. */
export const onIdentity = (scope: Exclude<Scope, "public">) =>
  attach(SubjectAuthorization, {
    ...plain,
    scope,
    names: { _tag: "Path", member: "handle" },
    proves: "subject",
  }) as <E extends HttpApiEndpoint.Constraint & HasHandle>(
    endpoint: E,
  ) => HttpApiEndpoint.AddMiddleware<E, SubjectAuthorization>

/** Reserves every value of a member. */
export const always = () => true

/** Like {@link onIdentity} for any credential, except that some members of the body are {@link Reserved}. */
export const onIdentityExcept = <Body>(
  detail: string,
  members: { readonly [M in keyof Body & string]?: (value: Exclude<Body[M], undefined>) => boolean },
) =>
  attach(SubjectAuthorization, {
    ...plain,
    scope: "any",
    names: { _tag: "Path", member: "handle" },
    proves: "subject",
    // The policy check decodes the body with the endpoint's own schema, whose type is `Body`.
    reserved: { detail, members: members as Reserved["members"] },
  }) as <E extends HttpApiEndpoint.Constraint & HasHandle & HasBody<Body>>(
    endpoint: E,
  ) => HttpApiEndpoint.AddMiddleware<E, SubjectAuthorization>

/**
 * Every credential, within the realm of the Org or of the Identity that the request names; an Identity Key within its
 * own realm only.
 */
export const inRealm = (names: Naming = nowhere) =>
  attach(RealmAuthorization, { ...plain, scope: "any", names, proves: "realm" })

export const byQuery = (member: string): Naming => ({ _tag: "Query", member })

/** The body names the Identity by its Handle; `handleOf` takes the type of the endpoint's payload. */
export const inRealmOfBody = <Body>(handleOf: (body: Body) => string | undefined) =>
  inRealm({ _tag: "Body", handleOf: handleOf as (body: unknown) => string | undefined }) as <
    E extends HttpApiEndpoint.Constraint & HasBody<Body>,
  >(
    endpoint: E,
  ) => HttpApiEndpoint.AddMiddleware<E, RealmAuthorization>

export const through = (resource: Resource, member: string): Naming => ({ _tag: "Resource", resource, member })

/** The endpoints of an API that have no policy; `never` if the API can be served. */
export type Unjudged<Groups extends Record<string, HttpApiGroup.Constraint>> = {
  [G in keyof Groups & string]: {
    [E in keyof Groups[G]["endpoints"] & string]: [
      Extract<
        HttpApiEndpoint.Middleware<Groups[G]["endpoints"][E]>,
        Open | Authorization | SubjectAuthorization | RealmAuthorization
      >,
    ] extends [never]
      ? `${G}.${E}`
      : never
  }[keyof Groups[G]["endpoints"] & string]
}[keyof Groups & string]

/** A rate limit that a call of the endpoint counts against, in addition to the general limit. */
export class CallPolicy extends Context.Service<CallPolicy, Exclude<Budget, "calls">>()(
  "@svc/domain/account/CallPolicy",
) {}

export type PublicLimitName =
  | "profile"
  | "hits"
  | "contact"
  | "magic_link"
  | "device"
  | "oauth_register"
  | "oauth_authorize"
  | "oauth_token"
  | "oauth_token_failed"
  | "oauth_document"

/** The limit per client address that a call without a credential counts against before its body is read. */
export class AddressLimit extends Context.Service<AddressLimit, PublicLimitName>()(
  "@svc/domain/account/AddressLimit",
) {}

/** The response contains a show-once secret, so it is not stored for replays with the same `Idempotency-Key`. */
export const ShowsSecret = Context.Reference<boolean>("@svc/domain/account/ShowsSecret", { defaultValue: () => false })

/** The response contains secrets or mail together with input of others, so it is not compressed (BREACH). */
export const Confidential = Context.Reference<boolean>("@svc/domain/account/Confidential", {
  defaultValue: () => false,
})

/** A single resource without a version. Its entity tag is computed from the response body. */
export const Tagged = Context.Reference<boolean>("@svc/domain/account/Tagged", { defaultValue: () => false })

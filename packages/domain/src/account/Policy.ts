/**
 * Who may call an endpoint and where it names its Identity, as one value on the endpoint. It is judged once, before the
 * handler (`Judgement.ts`), and read by everything that says who may call: the OpenAPI document and the list of tools.
 * {@link open}, {@link callers}, {@link onIdentity} and {@link inRealm} put the value on an endpoint together with the
 * middleware that provides its proofs, so that the two cannot differ.
 */
import { Context } from "effect"
import type { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware } from "effect/http-api"
import { Authorization, Open, RealmAuthorization, SubjectAuthorization } from "./Authorization.ts"
import type { Policy as Budget } from "./OrgProtocol.ts"

/**
 * `public`: anyone, without a credential. `any`: every credential, an Identity Key for its own Identity only.
 * `org`: an Admin Key or a session. `admin`: the same, refused as `admin_required`. `session`: the account holder.
 */
export type Scope = "public" | "any" | "org" | "admin" | "session"

/** What belongs to an Identity or to the Org and is named by its own id. */
export type Resource = "Event"

/** Where a request names its Identity: the resource, the path, the query or the body. */
export type Naming =
  | { readonly _tag: "Nowhere" }
  /** By its Handle: a member of the path, or one of the query that may be left out. */
  | { readonly _tag: "Path" | "Query"; readonly member: string }
  /** By its Handle in the decoded body, which may leave it out. */
  | { readonly _tag: "Body"; readonly handleOf: (body: unknown) => string | undefined }
  /** By the id of a resource in the path. */
  | { readonly _tag: "Resource"; readonly resource: Resource; readonly member: string }

/**
 * Members of a body that only a person or what acts for the whole account may set. An Identity Key and an app are refused
 * (`admin_required`), every other credential needs the `admin` scope of the capability (`scope_missing`).
 */
export interface Reserved {
  /** For each member, whether the given value is reserved. */
  readonly members: Readonly<Record<string, (value: unknown) => boolean>>
  readonly detail: string
}

export interface EndpointPolicy {
  readonly scope: Scope
  /** Why an Identity Key is refused, where the general sentence leaves that open. */
  readonly because?: string
  readonly names: Naming
  readonly reserved: Reserved | undefined
  /** What its handler gets beside the caller: an Identity, or the part of the account that is meant. */
  readonly proves: "caller" | "subject" | "realm"
  /** Its answer is of what the caller may act on alone, so a grant of some Identities may ask. */
  readonly filtered: boolean
}

export class Policy extends Context.Service<Policy, EndpointPolicy>()("@svc/domain/account/Policy") {}

/** An endpoint without a policy would be open to everyone, so it is a defect to serve one. */
export const policyOf = (endpoint: {
  readonly identifier: string
  readonly annotations: Context.Context<never>
}): EndpointPolicy => {
  const policy = Context.getOrUndefined(endpoint.annotations, Policy)
  if (policy === undefined) throw new Error(`the endpoint ${endpoint.identifier} does not say who may call it`)
  return policy
}

const nowhere: Naming = { _tag: "Nowhere" }
const plain = { names: nowhere, reserved: undefined, proves: "caller", filtered: false } as const

/** Adds a middleware and the policy it judges by; the library's own type of what comes of it, for any endpoint. */
const attach =
  <I extends HttpApiMiddleware.AnyId, S>(middleware: Context.Key<I, S>, policy: EndpointPolicy) =>
  <E extends HttpApiEndpoint.Constraint>(endpoint: E) =>
    (endpoint as unknown as HttpApiEndpoint.Top)
      .middleware(middleware)
      .annotate(Policy, policy) as unknown as HttpApiEndpoint.AddMiddleware<E, I>

/** Anyone may call it, without a credential. */
export const open = attach(Open, { ...plain, scope: "public" })

/** It concerns the Org or the caller itself; its handler gets no Identity. `because` tells an Identity Key why it is refused. */
export const callers = (scope: Exclude<Scope, "public">, because?: string) =>
  attach(Authorization, { ...plain, scope, ...(because === undefined ? {} : { because }) })

/** It concerns the Org, and tells a credential of what it may act on and nothing else. */
export const callersWithin = (scope: Exclude<Scope, "public">) =>
  attach(Authorization, { ...plain, scope, filtered: true })

type HasHandle = { readonly path: `${string}/:handle${string}` }
type HasBody<Body> = { readonly "~Payload": { readonly Type: Body } }

/** It acts on the Identity of its path's `:handle`. */
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

/** Like {@link onIdentity} for any credential, except for {@link Reserved} members of the body. */
export const onIdentityExcept = <Body>(
  detail: string,
  members: { readonly [M in keyof Body & string]?: (value: Exclude<Body[M], undefined>) => boolean },
) =>
  attach(SubjectAuthorization, {
    ...plain,
    scope: "any",
    names: { _tag: "Path", member: "handle" },
    proves: "subject",
    // The judgement decodes the body by the endpoint's own schema, whose type is `Body`.
    reserved: { detail, members: members as Reserved["members"] },
  }) as <E extends HttpApiEndpoint.Constraint & HasHandle & HasBody<Body>>(
    endpoint: E,
  ) => HttpApiEndpoint.AddMiddleware<E, SubjectAuthorization>

/** Any credential, within the Org's realm or that of the Identity it names; an Identity Key within its own alone. */
export const inRealm = (names: Naming = nowhere) =>
  attach(RealmAuthorization, { ...plain, scope: "any", names, proves: "realm" })

export const byQuery = (member: string): Naming => ({ _tag: "Query", member })

/** By the Handle in the body; the endpoint's payload is of the type that `handleOf` takes. */
export const inRealmOfBody = <Body>(handleOf: (body: Body) => string | undefined) =>
  inRealm({ _tag: "Body", handleOf: handleOf as (body: unknown) => string | undefined }) as <
    E extends HttpApiEndpoint.Constraint & HasBody<Body>,
  >(
    endpoint: E,
  ) => HttpApiEndpoint.AddMiddleware<E, RealmAuthorization>

export const through = (resource: Resource, member: string): Naming => ({ _tag: "Resource", resource, member })

/** The endpoints of an API that carry no policy; `never` for an API that can be served. */
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

/** A budget of its own that a call of the endpoint takes from, besides the one of all calls. */
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

/** The limit by client address that a call without a credential is counted against, before its body is looked at. */
export class AddressLimit extends Context.Service<AddressLimit, PublicLimitName>()(
  "@svc/domain/account/AddressLimit",
) {}

/** The answer carries a secret that is shown once, so it is not kept for a repeat with the same `Idempotency-Key`. */
export const ShowsSecret = Context.Reference<boolean>("@svc/domain/account/ShowsSecret", { defaultValue: () => false })

/** The answer carries secrets or someone's mail beside what others chose: it is not compressed (BREACH). */
export const Confidential = Context.Reference<boolean>("@svc/domain/account/Confidential", {
  defaultValue: () => false,
})

/** A single resource without a version: its entity tag is made of its representation. */
export const Tagged = Context.Reference<boolean>("@svc/domain/account/Tagged", { defaultValue: () => false })

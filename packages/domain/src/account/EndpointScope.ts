/**
 * Derives the scope of an endpoint from its declaration: the capability of its group, its method, its policy
 * (`Policy.ts`), whether it reaches outside the service (`Tool`, {@link External}) and whether it reveals a secret
 * ({@link Reveals}). Scopes are never written by hand, so that none can be wrong or missing.
 */
import { Context } from "effect"
import { Tool } from "../mcp/Tool.ts"
import { type EndpointPolicy, Policy } from "./Policy.ts"
import type { Action, Capability, ScopeName } from "./Scope.ts"

/** Capability of a group's endpoints, set by `HttpApiGroup.annotateEndpoints(About, "mail")`. */
export class About extends Context.Service<About, Capability>()("@svc/domain/account/About") {}

/** Set if the response contains a stored secret: the value of a secret, the first key of an Identity, an archive. */
export const Reveals = Context.Reference<boolean>("@svc/domain/account/Reveals", { defaultValue: () => false })

/** Set if the endpoint reaches outside the service and has no Tool annotation for that. */
const External = Context.Reference<boolean>("@svc/domain/account/External", { defaultValue: () => false })

/** Set if the response contains a token with which the Identity signs in elsewhere. */
export const Issues = Context.Reference<boolean>("@svc/domain/account/Issues", { defaultValue: () => false })

/** Set if the endpoint only describes the caller, which needs no scope. */
export const Unscoped = Context.Reference<boolean>("@svc/domain/account/Unscoped", { defaultValue: () => false })

interface Endpoint {
  readonly identifier: string
  readonly method: string
  readonly annotations: Context.Context<never>
}

const actionOf = ({ method, annotations }: Endpoint, { scope }: EndpointPolicy): Action => {
  if (Context.get(annotations, Reveals)) return "secret"
  if (Context.get(annotations, Issues)) return "token"
  if (method === "GET") return "read"
  if (scope !== "any") return "admin"
  const reachesOut = Context.get(annotations, External) || Context.getOrUndefined(annotations, Tool)?.external === true
  return reachesOut ? "send" : "write"
}

/**
 * Returns null if the endpoint needs no scope. Dies if the declaration determines none, as for an endpoint without a
 * policy.
 */
const derive = (endpoint: Endpoint): ScopeName | null => {
  const policy = Context.getOrUndefined(endpoint.annotations, Policy)
  if (policy === undefined) throw new Error(`the endpoint ${endpoint.identifier} has no policy`)
  if (policy.scope === "public" || Context.get(endpoint.annotations, Unscoped)) return null
  const capability = Context.getOrUndefined(endpoint.annotations, About)
  if (capability === undefined) throw new Error(`the endpoint ${endpoint.identifier} has no capability`)
  return `${capability}:${actionOf(endpoint, policy)}`
}

/** Returns the scope that reserved members of the body need: `admin` of the endpoint's capability. */
export const reservedScopeOf = (endpoint: Endpoint): ScopeName =>
  `${Context.getUnsafe(endpoint.annotations, About)}:admin`

const derived = new WeakMap<object, ScopeName | null>()

/** Returns the scope that the endpoint needs, or null. */
export const scopeOf = (endpoint: Endpoint): ScopeName | null => {
  const known = derived.get(endpoint)
  if (known !== undefined) return known
  const scope = derive(endpoint)
  derived.set(endpoint, scope)
  return scope
}

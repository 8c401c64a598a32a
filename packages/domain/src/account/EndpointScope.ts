/**
 * The scope that an endpoint needs, derived from what the endpoint says of itself: the capability of its group, its
 * method, who may call it (`Policy.ts`), whether it reaches beyond the service (`Tool`, {@link External}) or reveals a
 * secret ({@link Reveals}). Nobody writes scopes down, so none can be wrong or forgotten.
 */
import { Context } from "effect"
import { Tool } from "../mcp/Tool.ts"
import { type EndpointPolicy, Policy } from "./Policy.ts"
import type { Action, Capability, ScopeName } from "./Scope.ts"

/** What the endpoints of a group are about: `HttpApiGroup.annotateEndpoints(About, "mail")`. */
export class About extends Context.Service<About, Capability>()("@svc/domain/account/About") {}

/** The answer carries a secret that was kept: the value of a secret, an Identity's first key, an archive. */
export const Reveals = Context.Reference<boolean>("@svc/domain/account/Reveals", { defaultValue: () => false })

/** It reaches beyond the service, and is no tool that says so. */
export const External = Context.Reference<boolean>("@svc/domain/account/External", { defaultValue: () => false })

/** It tells a caller nothing but who it is, which every credential may know. */
export const Unscoped = Context.Reference<boolean>("@svc/domain/account/Unscoped", { defaultValue: () => false })

interface Endpoint {
  readonly identifier: string
  readonly method: string
  readonly annotations: Context.Context<never>
}

const actionOf = ({ method, annotations }: Endpoint, { scope }: EndpointPolicy): Action => {
  if (Context.get(annotations, Reveals)) return "secret"
  if (method === "GET") return "read"
  if (scope !== "any") return "admin"
  const reachesOut = Context.get(annotations, External) || Context.getOrUndefined(annotations, Tool)?.external === true
  return reachesOut ? "send" : "write"
}

/** Null where none is needed. An endpoint of which nothing follows is a defect to serve, as one without a policy is. */
const derive = (endpoint: Endpoint): ScopeName | null => {
  const policy = Context.getOrUndefined(endpoint.annotations, Policy)
  if (policy === undefined) throw new Error(`the endpoint ${endpoint.identifier} does not say who may call it`)
  if (policy.scope === "public" || Context.get(endpoint.annotations, Unscoped)) return null
  const capability = Context.getOrUndefined(endpoint.annotations, About)
  if (capability === undefined) throw new Error(`the endpoint ${endpoint.identifier} does not say what it is about`)
  return `${capability}:${actionOf(endpoint, policy)}`
}

/** The scope that members reserved by the endpoint's policy need: `admin` of its capability. */
export const reservedScopeOf = (endpoint: Endpoint): ScopeName =>
  `${Context.getUnsafe(endpoint.annotations, About)}:admin`

const derived = new WeakMap<object, ScopeName | null>()

/** The scope that a call of the endpoint needs; null where it needs none. */
export const scopeOf = (endpoint: Endpoint): ScopeName | null => {
  const known = derived.get(endpoint)
  if (known !== undefined) return known
  const scope = derive(endpoint)
  derived.set(endpoint, scope)
  return scope
}

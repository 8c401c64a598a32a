/** All scopes, derived from the endpoints that need them. */
import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "./Api.ts"
import { actions, capabilities, type ScopeName } from "./account/Scope.ts"
import { policyOf } from "./account/Policy.ts"
import { reservedScopeOf, scopeOf } from "./account/EndpointScope.ts"

interface ScopedEndpoint {
  /** Group and endpoint, such as `messages.list`. */
  readonly id: string
  readonly endpoint: HttpApiEndpoint.Top
  /** Null if the endpoint needs no scope. */
  readonly scope: ScopeName | null
  /** Members of the body that need an additional scope. */
  readonly reserved: { readonly scope: ScopeName; readonly members: ReadonlyArray<string> } | null
}

const reservedOf = (endpoint: HttpApiEndpoint.Top): ScopedEndpoint["reserved"] => {
  const { reserved } = policyOf(endpoint)
  return reserved === undefined ? null : { scope: reservedScopeOf(endpoint), members: Object.keys(reserved.members) }
}

export const endpoints: ReadonlyArray<ScopedEndpoint> = Object.entries(Api.groups).flatMap(([group, of]) =>
  Object.entries<HttpApiEndpoint.Top>(of.endpoints).map(([name, endpoint]) => ({
    id: `${group}.${name}`,
    endpoint,
    scope: scopeOf(endpoint),
    reserved: reservedOf(endpoint),
  })),
)

const needed = new Set(endpoints.flatMap(({ scope, reserved }) => [scope, reserved?.scope ?? null]))

/** Names of all scopes, ordered by capability and then from `read` upwards. */
export const scopeNames: ReadonlyArray<ScopeName> = capabilities.flatMap((capability) =>
  actions.map((action): ScopeName => `${capability}:${action}`).filter((name) => needed.has(name)),
)

export const isScope = (name: string): name is ScopeName => scopeNames.some((one) => one === name)

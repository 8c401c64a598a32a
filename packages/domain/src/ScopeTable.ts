/** Every scope there is: those that some endpoint needs. */
import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "./Api.ts"
import { actions, capabilities, type ScopeName } from "./account/Scope.ts"
import { scopeOf } from "./account/ScopeOf.ts"

export interface ScopedEndpoint {
  /** `messages.list`: group and endpoint. */
  readonly id: string
  readonly endpoint: HttpApiEndpoint.Top
  /** Null where none is needed. */
  readonly scope: ScopeName | null
}

export const endpoints: ReadonlyArray<ScopedEndpoint> = Object.entries(Api.groups).flatMap(([group, of]) =>
  Object.entries<HttpApiEndpoint.Top>(of.endpoints).map(([name, endpoint]) => ({
    id: `${group}.${name}`,
    endpoint,
    scope: scopeOf(endpoint),
  })),
)

const needed = new Set(endpoints.map(({ scope }) => scope))

/** In the order of the capabilities, each from `read` on. */
export const scopeNames: ReadonlyArray<ScopeName> = capabilities.flatMap((capability) =>
  actions.map((action): ScopeName => `${capability}:${action}`).filter((name) => needed.has(name)),
)

export const isScope = (name: string): name is ScopeName => scopeNames.some((one) => one === name)

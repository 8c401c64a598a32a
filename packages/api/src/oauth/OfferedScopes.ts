/** The scopes that an app may be granted: those of the endpoints, except scopes that could create other credentials. */
import { capabilities, type Capability, type Action, actions } from "@svc/domain/account/Scope"
import { isScope } from "@svc/domain/ScopeTable"

/** Vault values, the only secrets that an app can be granted. */
export const vaultValues = "vault:secret"

const isOffered = (capability: Capability, action: Action) =>
  isScope(`${capability}:${action}`) && (action !== "secret" || `${capability}:${action}` === vaultValues)

/** Grouped by capability. */
export const offered: ReadonlyArray<{ readonly capability: Capability; readonly actions: ReadonlyArray<Action> }> =
  capabilities.map((capability) => ({ capability, actions: actions.filter((action) => isOffered(capability, action)) }))

const names = (wanted: ReadonlySet<Action>) =>
  offered
    .filter(({ capability }) => capability !== "account")
    .flatMap(({ capability, actions }) =>
      actions.filter((action) => wanted.has(action)).map((action) => `${capability}:${action}`),
    )

/** Reads everything of an Identity and changes nothing. */
export const readOnly: ReadonlyArray<string> = names(new Set(["read"]))
/** Acts as an Identity, without decisions about the account. */
export const readAndAct: ReadonlyArray<string> = names(new Set(["read", "write", "send"]))

/** Every scope that an app can be granted. */
export const grantable: ReadonlySet<string> = new Set(
  offered.flatMap(({ capability, actions }) => actions.map((action) => `${capability}:${action}`)),
)

/** The default scope of a request without scopes: the minimum that is useful. */
export const baseline: ReadonlyArray<string> = ["identity:read", "mail:read", "card:read"]

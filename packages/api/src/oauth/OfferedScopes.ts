/** The scopes that an app may be granted: those that the endpoints need, but for what would hand out other credentials. */
import { capabilities, type Capability, type Action, actions } from "@svc/domain/account/Scope"
import { isScope } from "@svc/domain/ScopeTable"

/** Values of the Vault: the one secret that an app can be given. */
export const vaultValues = "vault:secret"

const isOffered = (capability: Capability, action: Action) =>
  isScope(`${capability}:${action}`) && (action !== "secret" || `${capability}:${action}` === vaultValues)

/** By capability, in their order. */
export const offered: ReadonlyArray<{ readonly capability: Capability; readonly actions: ReadonlyArray<Action> }> =
  capabilities.map((capability) => ({ capability, actions: actions.filter((action) => isOffered(capability, action)) }))

const names = (wanted: ReadonlySet<Action>) =>
  offered
    .filter(({ capability }) => capability !== "account")
    .flatMap(({ capability, actions }) =>
      actions.filter((action) => wanted.has(action)).map((action) => `${capability}:${action}`),
    )

/** To look at everything of an Identity, and change nothing. */
export const readOnly: ReadonlyArray<string> = names(new Set(["read"]))
/** To act as an Identity; nothing that is the account's to decide. */
export const readAndAct: ReadonlyArray<string> = names(new Set(["read", "write", "send"]))

/** All that an app can be given. */
export const grantable: ReadonlySet<string> = new Set(
  offered.flatMap(({ capability, actions }) => actions.map((action) => `${capability}:${action}`)),
)

/** What is asked for where a client says nothing: the least that is of use. */
export const baseline: ReadonlyArray<string> = ["identity:read", "mail:read", "card:read"]

/**
 * Scopes of keys and grants. A scope is `capability:action`; `*` includes all scopes. Within a capability, `admin`
 * includes `send`, `send` includes `write`, and `write` includes `read`. `token` and `secret` are separate: only `*` includes them.
 * The scope of an endpoint is derived from the endpoint (`EndpointScope.ts`).
 */
export const capabilities = [
  "identity",
  "mail",
  "card",
  "tunnel",
  "webhook",
  "event",
  "vault",
  "connector",
  "proof",
  "account",
] as const
export type Capability = (typeof capabilities)[number]

/** Each action includes the ones before it. */
const ladder = ["read", "write", "send", "admin"] as const
export type Action = (typeof ladder)[number] | "token" | "secret"
export const actions: ReadonlyArray<Action> = [...ladder, "token", "secret"]

/** For example `mail:send`. */
export type ScopeName = `${Capability}:${Action}`

/** The scope that includes all others. */
export const everything = "*"

/** The scopes of a credential, parsed once. Credentials with equal scopes share the value. */
export interface Scopes {
  /** The granted names in the order of {@link capabilities}; `["*"]` for all scopes. */
  readonly names: ReadonlyArray<string>
  /** The stored form: the names, separated by spaces. */
  readonly text: string
  /** Whether the scopes are `*`. */
  readonly all: boolean
  /** All scopes that the names include. */
  readonly held: ReadonlySet<string>
}

const included = (name: string): ReadonlyArray<string> => {
  const [capability, action] = name.split(":")
  const rung = ladder.findIndex((one) => one === action)
  return rung < 0 ? [name] : ladder.slice(0, rung + 1).map((one) => `${capability}:${one}`)
}

const rank = (name: string) => {
  const [capability, action] = name.split(":")
  return (
    capabilities.findIndex((one) => one === capability) * actions.length + actions.findIndex((one) => one === action)
  )
}

const make = (text: string): Scopes => {
  const given = [...new Set(text.split(" ").filter((name) => name !== ""))]
  if (given.includes(everything)) return { names: [everything], text: everything, all: true, held: new Set() }
  const names = given.toSorted((a, b) => rank(a) - rank(b))
  return { names, text: names.join(" "), all: false, held: new Set(names.flatMap(included)) }
}

const kept = new Map<string, Scopes>()
const keptAtMost = 1000

/** All scopes, as a session and a key without named scopes have them. */
export const unlimited: Scopes = make(everything)

/** Parses the stored form. Equal texts share one value, so that a request builds no set. */
export const scopesOf = (text: string): Scopes => {
  if (text === everything) return unlimited
  const known = kept.get(text)
  if (known !== undefined) return known
  const made = make(text)
  if (kept.size >= keptAtMost) kept.clear()
  kept.set(text, made)
  return made
}

/** Returns whether the scopes include the needed one; null means that none is needed. */
export const allows = ({ all, held }: Scopes, needed: ScopeName | null): boolean =>
  needed === null || all || held.has(needed)

/** Returns whether the scopes include all of the others. */
export const includes = (scopes: Scopes, others: Scopes): boolean =>
  scopes.all || (!others.all && [...others.held].every((one) => scopes.held.has(one)))

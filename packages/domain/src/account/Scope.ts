/**
 * What a credential may do, in the words of keys and grants: scopes `capability:action`, of which `*` is all. Within a
 * capability `admin` includes `send`, which includes `write`, which includes `read`; `secret` is its own right, which
 * only `*` includes. Which scope an endpoint needs is derived from the endpoint (`ScopeOf.ts`).
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
  "account",
] as const
export type Capability = (typeof capabilities)[number]

/** Each includes those before it. */
const ladder = ["read", "write", "send", "admin"] as const
export type Action = (typeof ladder)[number] | "secret"
export const actions: ReadonlyArray<Action> = [...ladder, "secret"]

/** `mail:send`. */
export type ScopeName = `${Capability}:${Action}`

/** The scope that is all of them. */
export const everything = "*"

/** The scopes of a credential, read once and kept for as long as there are credentials with the same. */
export interface Scopes {
  /** As they were given, in the order of {@link capabilities}; `["*"]` for all. */
  readonly names: ReadonlyArray<string>
  /** `names` with a space between each: as they are stored. */
  readonly text: string
  /** Whether it is `*`. */
  readonly all: boolean
  /** Every scope that the names include. */
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

/** Every scope: a session's, and that of a key that names none. */
export const unlimited: Scopes = make(everything)

/** The scopes of a text as it is stored. Credentials with the same share one value, so a call makes no set. */
export const scopesOf = (text: string): Scopes => {
  if (text === everything) return unlimited
  const known = kept.get(text)
  if (known !== undefined) return known
  const made = make(text)
  if (kept.size >= keptAtMost) kept.clear()
  kept.set(text, made)
  return made
}

/** Whether the scopes allow what needs that one; null needs none. */
export const allows = ({ all, held }: Scopes, needed: ScopeName | null): boolean =>
  needed === null || all || held.has(needed)

/** Whether the scopes include every one of the others. */
export const includes = (scopes: Scopes, others: Scopes): boolean =>
  scopes.all || (!others.all && [...others.held].every((one) => scopes.held.has(one)))

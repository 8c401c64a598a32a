/**
 * Judges a request by its endpoint's policy. Pure: who calls, what the request names and what the store knows of it go
 * in; the Identity that the handler may act on, or the refusal, comes out. What later narrows a credential (scopes of a
 * key, several Identities) is judged here and nowhere else.
 */
import { Result } from "effect"
import { type AddressBook, keyUrl } from "../Addresses.ts"
import type { IdentityRef } from "../IdentityRef.ts"
import {
  AdminRequired,
  ForeignIdentity,
  IdentityNotGranted,
  NetworkRefused,
  NotFound,
  OrgScopeRequired,
  ScopeMissing,
  SessionRequired,
} from "../problems/Problem.ts"
import { type CallerInfo, mayActOn, soleOf } from "./Authorization.ts"
import { isWithin } from "./Networks.ts"
import type { EndpointPolicy, Resource } from "./Policy.ts"
import { allows, type ScopeName } from "./Scope.ts"

/** What a request names. `Unreadable`: its decoding will refuse it. */
export type Named =
  | { readonly _tag: "Nothing" }
  | {
      readonly _tag: "Handle"
      readonly canonical: string
      /** Whether decoding takes the text. */
      readonly readable: boolean
      /** The Identity of that name in the caller's Org. */
      readonly found: IdentityRef | undefined
    }
  | {
      readonly _tag: "Resource"
      readonly resource: Resource
      /** The Identity it belongs to, null for what is the Org's; undefined where the Org has no such resource. */
      readonly owner: IdentityRef | null | undefined
    }
  | { readonly _tag: "Unreadable" }

/** The Identity a request is about: null for none, undefined where its decoding will refuse it anyway. */
export type Judged = IdentityRef | null | undefined

export type Refusal =
  | SessionRequired
  | OrgScopeRequired
  | AdminRequired
  | ForeignIdentity
  | IdentityNotGranted
  | ScopeMissing
  | NotFound

/** Reminds an agent who it is: a model that is refused should not try the same under another name. */
const actsAs = ({ identities }: CallerInfo) =>
  identities === null || identities.length === 0
    ? ""
    : `You act as ${identities
        .slice(0, 10)
        .map(({ handle }) => `@${handle}`)
        .join(", ")}${identities.length > 10 ? ` and ${identities.length - 10} more` : ""}. `

const byAccess = ({ scope, names, filtered, because }: EndpointPolicy, caller: CallerInfo): Refusal | undefined => {
  const { kind } = caller
  if (scope === "session" && kind !== "session") {
    return new SessionRequired({ detail: "Only a console session may do this." })
  }
  if (kind === "grant" && caller.identities !== null) {
    // What is about one Identity that was granted is a matter of scopes; what is about the whole Org was not granted.
    return (scope === "org" || scope === "admin") && names._tag === "Nowhere" && !filtered
      ? new OrgScopeRequired({ detail: `${actsAs(caller)}This concerns the whole account, which was not granted.` })
      : undefined
  }
  if (kind !== "identity_key") return undefined
  if (scope === "org")
    return new OrgScopeRequired({ detail: `${actsAs(caller)}An Identity Key cannot act for the whole Org.` })
  if (scope === "admin")
    return new AdminRequired({ detail: `${actsAs(caller)}${because ?? "An Identity Key may not do this."}` })
  return undefined
}

/** Whether an endpoint may be called at all, whatever Identity the call names. */
export const mayCall = (policy: EndpointPolicy, caller: CallerInfo): boolean => byAccess(policy, caller) === undefined

const foreign = (caller: CallerInfo): Refusal =>
  caller.kind === "grant"
    ? new IdentityNotGranted({ detail: `${actsAs(caller)}The account holder granted no other Identity.` })
    : new ForeignIdentity({ detail: `${actsAs(caller)}An Identity Key may name only its own Identity.` })

/** The Identity that is meant where none is named; one that may act on several has to say. */
const unnamed = ({ proves }: EndpointPolicy, caller: CallerInfo): Result.Result<Judged, Refusal> => {
  const sole = soleOf(caller)
  return sole !== null || caller.identities === null || proves !== "realm"
    ? Result.succeed(sole)
    : Result.fail(
        new IdentityNotGranted({ detail: `${actsAs(caller)}Name the Identity: the whole account was not granted.` }),
      )
}

/**
 * Who may call first, then whose the Identity is, then whether it exists: so an Identity Key learns nothing of others,
 * and an Identity of another Org is like none.
 */
export const judge = (policy: EndpointPolicy, caller: CallerInfo, named: Named): Result.Result<Judged, Refusal> => {
  const refused = byAccess(policy, caller)
  if (refused !== undefined) return Result.fail(refused)
  switch (named._tag) {
    case "Nothing":
      return unnamed(policy, caller)
    case "Unreadable":
      return Result.succeed(undefined)
    case "Handle":
      // A text that cannot be a Handle has no owner: the decoder reports what is wrong with it.
      if (!named.readable) return Result.succeed(undefined)
      if (!mayActOn(caller, named.canonical)) return Result.fail(foreign(caller))
      return named.found === undefined
        ? Result.fail(new NotFound({ detail: "The Identity does not exist." }))
        : Result.succeed(named.found)
    case "Resource": {
      const { owner, resource } = named
      const visible =
        owner !== undefined && (caller.identities === null || (owner !== null && mayActOn(caller, owner.canonical)))
      return visible ? Result.succeed(owner) : Result.fail(new NotFound({ detail: `There is no such ${resource}.` }))
    }
  }
}

/**
 * Whether what the credential may do includes the scope of the endpoint; for whom {@link judge} let in. A grant is widened
 * where it is shown, a key stays what it is and another is made.
 */
export const judgeScope = (
  needed: ScopeName | null,
  { scopes, kind, credentialId }: Pick<CallerInfo, "scopes" | "kind" | "credentialId">,
  book: Pick<AddressBook, "baseUrl">,
): ScopeMissing | undefined => {
  if (needed === null || allows(scopes, needed)) return undefined
  const widen_url = keyUrl(book, credentialId)
  const how = kind === "grant" ? "allow it" : "make a key with it"
  return new ScopeMissing({
    detail: `This needs the scope ${needed}; the credential has ${scopes.names.join(", ")}. The account holder can ${how} at ${widen_url}.`,
    scopes: [needed],
    widen_url,
  })
}

/** Whether a credential may be used from where the call came; `from` works its address out when it is asked. */
export const judgeNetwork = (
  { networks }: Pick<CallerInfo, "networks">,
  from: { readonly address: string },
): NetworkRefused | undefined =>
  networks === null || isWithin(networks, from.address)
    ? undefined
    : new NetworkRefused({
        detail: `The credential is bound to networks; ${from.address} is in none of them.`,
      })

const isBound = ({ kind }: Pick<CallerInfo, "kind">) => kind === "identity_key" || kind === "grant"

/** Returns whether a body may ask for more than the caller may set, so that {@link judgeBody} has to see it. */
export const looksAtBody = ({ reserved }: EndpointPolicy, needed: ScopeName, caller: CallerInfo): boolean =>
  reserved !== undefined && (isBound(caller) || !allows(caller.scopes, needed))

/** Returns why the caller may not set what the body names; `needed` is the scope that reserved members need. */
export const judgeBody = (
  { reserved }: EndpointPolicy,
  needed: ScopeName,
  caller: CallerInfo,
  body: unknown,
  book: Pick<AddressBook, "baseUrl">,
): AdminRequired | ScopeMissing | undefined => {
  if (reserved === undefined || typeof body !== "object" || body === null) return undefined
  const members = Object.entries(body)
    .filter(([name, value]) => value !== undefined && reserved.members[name]?.(value) === true)
    .map(([name]) => name)
  if (members.length === 0) return undefined
  if (isBound(caller)) {
    const errors = members.map((name) => ({ path: `/${name}`, message: "only an Admin Key or a session may set this" }))
    return new AdminRequired({ detail: reserved.detail, errors })
  }
  const missing = judgeScope(needed, caller, book)
  return missing === undefined
    ? undefined
    : new ScopeMissing({ ...missing, detail: `To set ${members.join(" and ")}: ${missing.detail}` })
}

/**
 * Evaluates the policy of an endpoint for a request, without I/O. The input is the caller, what the request names, and
 * what the store knows about it; the result is the Identity that the handler may act on, or a rejection. All
 * restrictions of a credential (scopes of a key, a choice of Identities) are applied here and nowhere else.
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

/** The target that a request names. `Unreadable` means that decoding will reject the request. */
export type Named =
  | { readonly _tag: "Nothing" }
  | {
      readonly _tag: "Handle"
      readonly canonical: string
      /** Whether the text can be decoded as a Handle. */
      readonly readable: boolean
      /** The Identity with this Handle in the caller's Org. */
      readonly found: IdentityRef | undefined
    }
  | {
      readonly _tag: "Resource"
      readonly resource: Resource
      /** The Identity that owns the resource, or null if the Org owns it; undefined if the Org has no such resource. */
      readonly owner: IdentityRef | null | undefined
    }
  | { readonly _tag: "Unreadable" }

/** The Identity that a request acts on: null for none, undefined if decoding will reject the request. */
type Judged = IdentityRef | null | undefined

type Refusal =
  | SessionRequired
  | OrgScopeRequired
  | AdminRequired
  | ForeignIdentity
  | IdentityNotGranted
  | ScopeMissing
  | NotFound

/** Tells an agent which Identity it acts as, so that a rejected model does not retry under another name. */
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
    // For a granted Identity, the scopes decide. An endpoint about the whole Org is outside the grant.
    return (scope === "org" || scope === "admin") && names._tag === "Nowhere" && !filtered
      ? new OrgScopeRequired({
          detail: `${actsAs(caller)}This concerns the whole account, to which you have no access.`,
        })
      : undefined
  }
  if (kind !== "identity_key") return undefined
  if (scope === "org")
    return new OrgScopeRequired({ detail: `${actsAs(caller)}An Identity Key cannot act for the whole Org.` })
  if (scope === "admin")
    return new AdminRequired({ detail: `${actsAs(caller)}${because ?? "An Identity Key may not do this."}` })
  return undefined
}

/** Returns whether the caller may use the endpoint at all, whichever Identity the request names. */
export const mayCall = (policy: EndpointPolicy, caller: CallerInfo): boolean => byAccess(policy, caller) === undefined

const foreign = (caller: CallerInfo): Refusal =>
  caller.kind === "grant"
    ? new IdentityNotGranted({ detail: `${actsAs(caller)}The account holder granted access to no other Identity.` })
    : new ForeignIdentity({ detail: `${actsAs(caller)}An Identity Key can only name its own Identity.` })

/** Returns the Identity that applies if the request names none. A caller with several Identities must name one. */
const unnamed = ({ proves }: EndpointPolicy, caller: CallerInfo): Result.Result<Judged, Refusal> => {
  const sole = soleOf(caller)
  return sole !== null || caller.identities === null || proves !== "realm"
    ? Result.succeed(sole)
    : Result.fail(
        new IdentityNotGranted({
          detail: `${actsAs(caller)}Name the Identity; you have no access to the whole account.`,
        }),
      )
}

/**
 * Checks the caller, then the owner of the Identity, then whether the Identity exists. An Identity Key thus learns
 * nothing about other Identities, and an Identity of another Org looks like one that does not exist.
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
      // A text that cannot be a Handle belongs to nobody; decoding reports what is wrong with it.
      if (!named.readable) return Result.succeed(undefined)
      if (!mayActOn(caller, named.canonical)) return Result.fail(foreign(caller))
      return named.found === undefined
        ? Result.fail(new NotFound({ detail: "The Identity does not exist." }))
        : Result.succeed(named.found)
    case "Resource": {
      const { owner, resource } = named
      const visible =
        owner !== undefined && (caller.identities === null || (owner !== null && mayActOn(caller, owner.canonical)))
      return visible ? Result.succeed(owner) : Result.fail(new NotFound({ detail: `The ${resource} does not exist.` }))
    }
  }
}

/**
 * Checks that the credential has the scope of the endpoint, for a caller that {@link judge} accepted. The problem for a
 * grant links to the page that widens it; a key cannot be widened, so its problem asks for a new key.
 */
export const judgeScope = (
  needed: ScopeName | null,
  { scopes, kind, credentialId }: Pick<CallerInfo, "scopes" | "kind" | "credentialId">,
  book: Pick<AddressBook, "baseUrl">,
): ScopeMissing | undefined => {
  if (needed === null || allows(scopes, needed)) return undefined
  const widen_url = keyUrl(book, credentialId)
  const how = kind === "grant" ? "allow it" : "create a key with it"
  return new ScopeMissing({
    detail: `This needs the scope ${needed}; the credential has ${scopes.names.join(", ")}. The account holder can ${how} at ${widen_url}.`,
    scopes: [needed],
    widen_url,
  })
}

/**
 * Checks that the credential may be used from the client's address; `from` computes the address only if it is needed.
 */
export const judgeNetwork = (
  { networks }: Pick<CallerInfo, "networks">,
  from: { readonly address: string },
): NetworkRefused | undefined =>
  networks === null || isWithin(networks, from.address)
    ? undefined
    : new NetworkRefused({
        detail: `The credential is restricted to certain networks, and ${from.address} is not in any of them.`,
      })

const isBound = ({ kind }: Pick<CallerInfo, "kind">) => kind === "identity_key" || kind === "grant"

/**
 * Returns whether the body may contain members that the caller may not set, so that {@link judgeBody} must check it.
 */
export const looksAtBody = ({ reserved }: EndpointPolicy, needed: ScopeName, caller: CallerInfo): boolean =>
  reserved !== undefined && (isBound(caller) || !allows(caller.scopes, needed))

/** Returns why the caller may not set members of the body; `needed` is the scope that reserved members need. */
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

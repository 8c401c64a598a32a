/**
 * Judges a request by its endpoint's policy. Pure: who calls, what the request names and what the store knows of it go
 * in; the Identity that the handler may act on, or the refusal, comes out. What later narrows a credential (scopes of a
 * key, several Identities) is judged here and nowhere else.
 */
import { Result } from "effect"
import type { IdentityRef } from "../IdentityRef.ts"
import { AdminRequired, ForeignIdentity, NotFound, OrgScopeRequired, SessionRequired } from "../problems/Problem.ts"
import type { CallerInfo } from "./Authorization.ts"
import type { EndpointPolicy, Resource } from "./Policy.ts"

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

export type Refusal = SessionRequired | OrgScopeRequired | AdminRequired | ForeignIdentity | NotFound

/** Whether a credential may act on the Identity of that name. */
const mayActOn = ({ identity }: CallerInfo, canonical: string) => identity === null || identity.canonical === canonical

/** Reminds an agent who it is: a model that is refused should not try the same under another name. */
const actsAs = ({ identity }: CallerInfo) => (identity === null ? "" : `You act as @${identity.handle}. `)

const byScope = ({ scope }: EndpointPolicy, caller: CallerInfo): Refusal | undefined => {
  const { kind } = caller
  if (scope === "session" && kind !== "session") {
    return new SessionRequired({ detail: "Only a console session may do this." })
  }
  if (kind !== "identity_key") return undefined
  if (scope === "org")
    return new OrgScopeRequired({ detail: `${actsAs(caller)}An Identity Key cannot act for the whole Org.` })
  if (scope === "admin") return new AdminRequired({ detail: `${actsAs(caller)}An Identity Key may not do this.` })
  return undefined
}

/**
 * The scope first, then whose the Identity is, then whether it exists: so an Identity Key learns nothing of others, and
 * an Identity of another Org is like none.
 */
export const judge = (policy: EndpointPolicy, caller: CallerInfo, named: Named): Result.Result<Judged, Refusal> => {
  const refused = byScope(policy, caller)
  if (refused !== undefined) return Result.fail(refused)
  switch (named._tag) {
    case "Nothing":
      return Result.succeed(caller.identity)
    case "Unreadable":
      return Result.succeed(undefined)
    case "Handle":
      if (!mayActOn(caller, named.canonical)) {
        return Result.fail(
          new ForeignIdentity({ detail: `${actsAs(caller)}An Identity Key may name only its own Identity.` }),
        )
      }
      if (!named.readable) return Result.succeed(undefined)
      return named.found === undefined
        ? Result.fail(new NotFound({ detail: "There is no such Identity." }))
        : Result.succeed(named.found)
    case "Resource": {
      const { owner, resource } = named
      const visible = owner !== undefined && (caller.identity === null || owner?.id === caller.identity.id)
      return visible ? Result.succeed(owner) : Result.fail(new NotFound({ detail: `There is no such ${resource}.` }))
    }
  }
}

/** Whether a body has to be looked at before the handler. */
export const looksAtBody = (policy: EndpointPolicy, { kind }: CallerInfo): boolean =>
  kind === "identity_key" && policy.reserved !== undefined

/** What a body asks for beyond what an Identity Key may; for callers of whom {@link looksAtBody} holds. */
export const judgeBody = ({ reserved }: EndpointPolicy, body: unknown): AdminRequired | undefined =>
  reserved?.concerns(body) === true ? new AdminRequired({ detail: reserved.detail }) : undefined

/**
 * The rights of a new key: scopes, expiry and networks, as requested and as granted. A key never has wider rights, a
 * later expiry or more networks than the credential that creates it; omitted rights are those of the creator.
 */
import { Result, Schema } from "effect"
import { InvalidRequest, ScopeExceeds, ScopeUnknown } from "../problems/Problem.ts"
import { boundedList } from "../BoundedList.ts"
import { Text } from "../Text.ts"
import { NamedTime } from "../Timestamp.ts"
import type { CallerInfo } from "./Authorization.ts"
import { canonicalNetwork, coversNetworks, type Networks, networksOf } from "./Networks.ts"
import { everything, includes, type Scopes, scopesOf, unlimited } from "./Scope.ts"

const dayMillis = 86_400_000

/** Maximum number of active keys of an Org, not counting the first keys of its Identities. */
export const keysAtMost = 200

/** An address or a CIDR range, IPv4 or IPv6. */
const Network = Text.check(Schema.isMaxLength(64))

/** The operation validates the names, since unknown scopes have their own problem code. */
export const RequestedScopes = Schema.Array(Text.check(Schema.isMaxLength(64))).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(100),
)
export const RequestedNetworks = boundedList(
  Network,
  20,
  (text) => canonicalNetwork(text) !== undefined,
  "an address or a CIDR range",
).check(Schema.isMinLength(1))
export const ExpiresInDays = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 365 }))

/** Members of a request for a key. */
export const requestedRights = {
  scopes: Schema.optionalKey(RequestedScopes),
  /** The expiry. `expires_in_days` gives it relative to now. */
  expires_at: Schema.optionalKey(NamedTime),
  expires_in_days: Schema.optionalKey(ExpiresInDays),
  networks: Schema.optionalKey(RequestedNetworks),
}
const RequestedRights = Schema.Struct(requestedRights)
export type RequestedRights = typeof RequestedRights.Type

export interface KeyRights {
  readonly scopes: Scopes
  /** Null for no expiry. */
  readonly expiresAt: Date | null
  /** Null for no restriction. */
  readonly networks: Networks | null
}

type Maker = Pick<CallerInfo, "scopes" | "expiresAt" | "networks">

/** Returns the scopes with these names. */
export const namedScopes = (
  names: ReadonlyArray<string>,
  isKnown: (name: string) => boolean,
): Result.Result<Scopes, ScopeUnknown> => {
  const unknown = names.filter((name) => name !== everything && !isKnown(name))
  return unknown.length === 0
    ? Result.succeed(scopesOf([...new Set(names)].join(" ")))
    : Result.fail(
        new ScopeUnknown({
          detail: `The scope ${unknown[0]} does not exist.`,
          scopes: unknown.slice(0, 20),
        }),
      )
}

/** Returns why the creator may not grant these rights, or undefined if it may. */
const exceeds = (maker: Maker, rights: KeyRights): ScopeExceeds | undefined => {
  if (!includes(maker.scopes, rights.scopes)) {
    const beyond = rights.scopes.all
      ? [everything]
      : rights.scopes.names.filter((name) => !includes(maker.scopes, scopesOf(name)))
    return new ScopeExceeds({
      detail: `The new key would have ${beyond.join(", ")}, which the creating credential does not have.`,
      scopes: beyond,
    })
  }
  if (maker.expiresAt !== null && (rights.expiresAt === null || rights.expiresAt > maker.expiresAt)) {
    return new ScopeExceeds({
      detail: `The new key would outlast the creating credential, which expires at ${maker.expiresAt.toISOString()}.`,
    })
  }
  return coversNetworks(maker.networks, rights.networks)
    ? undefined
    : new ScopeExceeds({
        detail: "The new key would be valid outside the networks of the creating credential.",
      })
}

/**
 * Returns why a credential may not read or replace a secret whose rights cannot be narrowed: the Identity Key and the
 * mailbox password have every scope of the Identity, no end and no networks. Only a credential without such limits may.
 */
export const fallsShort = (caller: Maker): ScopeExceeds | undefined => {
  const excess = exceeds(caller, { scopes: unlimited, expiresAt: null, networks: null })
  return excess === undefined
    ? undefined
    : new ScopeExceeds({
        ...excess,
        detail:
          "The Identity Key and the mailbox password have every scope, no expiry and no network limit, so only a session or a key without such limits may read or replace them. Create a key with `POST /api/identities/{handle}/keys` instead.",
      })
}

const wrong = (member: string, message: string) =>
  Result.fail(new InvalidRequest({ detail: `\`${member}\`: ${message}.`, errors: [{ path: `/${member}`, message }] }))

/** Formats {@link RequestedNetworks} for the store. */
export const networksText = (networks: ReadonlyArray<string>): string =>
  [...new Set(networks.map((one) => canonicalNetwork(one)!))].join(" ")

/** Returns the rights of a requested key. */
export const judgeRights = (
  maker: Maker,
  request: RequestedRights,
  isKnown: (name: string) => boolean,
  now: number,
): Result.Result<KeyRights, InvalidRequest | ScopeUnknown | ScopeExceeds> => {
  if (request.expires_at !== undefined && request.expires_in_days !== undefined) {
    return wrong("expires_in_days", "give either `expires_at` or `expires_in_days`")
  }
  const expiresAt =
    request.expires_at ??
    (request.expires_in_days === undefined ? maker.expiresAt : new Date(now + request.expires_in_days * dayMillis))
  if (request.expires_at !== undefined && !(request.expires_at.getTime() > now)) {
    return wrong("expires_at", "expected a time in the future")
  }
  const scopes = request.scopes === undefined ? Result.succeed(maker.scopes) : namedScopes(request.scopes, isKnown)
  if (Result.isFailure(scopes)) return Result.fail(scopes.failure)
  const networks = request.networks === undefined ? maker.networks : networksOf(networksText(request.networks))
  const rights: KeyRights = { scopes: scopes.success, expiresAt, networks }
  const refused = exceeds(maker, rights)
  return refused === undefined ? Result.succeed(rights) : Result.fail(refused)
}

/**
 * Returns the rights of a replacement key: the same scopes and networks, and the same lifetime counted from now. The
 * key expires no later than its creator.
 */
export const renewed = (
  maker: Maker,
  former: KeyRights & { readonly createdAt: Date },
  now: number,
): Result.Result<KeyRights, ScopeExceeds> => {
  const { scopes, networks } = former
  const own = former.expiresAt === null ? null : new Date(now + former.expiresAt.getTime() - former.createdAt.getTime())
  const expiresAt = maker.expiresAt !== null && (own === null || own > maker.expiresAt) ? maker.expiresAt : own
  const refused = exceeds(maker, { scopes, networks, expiresAt })
  return refused === undefined ? Result.succeed({ scopes, networks, expiresAt }) : Result.fail(refused)
}

/** Times before the expiry at which the account is notified, in milliseconds: 7 days, 1 day, and at the expiry. */
const noticesBefore = [7 * dayMillis, dayMillis, 0] as const

/** Returns when the account is next notified of the expiry, or null. */
export const nextExpiryNotice = (expiresAt: Date | null, now: number): Date | null => {
  if (expiresAt === null) return null
  const next = noticesBefore.map((before) => expiresAt.getTime() - before).find((at) => at > now)
  return new Date(next ?? expiresAt.getTime())
}

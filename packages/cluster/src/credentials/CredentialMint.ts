/**
 * Creates credentials: tokens for sessions and keys, passwords for mail programs. Only their hashes are stored, and a
 * sealed copy until the owner has received it ({@link ShowOnce}).
 */
import { hash, randomBytes } from "node:crypto"
import type { CredentialKind } from "@svc/domain/account/Account"
import { type KeyRights, nextExpiryNotice } from "@svc/domain/account/KeyRights"
import { everything, unlimited } from "@svc/domain/account/Scope"
import type { Initiator } from "@svc/domain/account/Initiator"
import { displayPrefix, make } from "@svc/domain/account/Token"
import { Statement } from "effect/sql"
import { raiseForOrg } from "../events/Raise.ts"
import type { Sql } from "../store/Database.ts"

export const sha256 = (text: string): Uint8Array => new Uint8Array(hash("sha256", text, "buffer"))

/** Returns the hash in hexadecimal, as lookups send it. */
export const sha256Hex = (text: string): string => hash("sha256", text, "hex")

export interface Minted {
  readonly token: string
  readonly hash: Uint8Array
  readonly prefix: string
}

/** Creates a credential; only its hash is stored. */
export const mint = (kind: CredentialKind): Minted => {
  const token = make(kind, randomBytes(32))
  return { token, hash: sha256(token), prefix: displayPrefix(token) }
}

/** Creates a password for mail programs: 160 bits, easy to type, without look-alike characters. */
export const mintPassword = (): string => {
  const alphabet = "abcdefghijkmnpqrstuvwxyz23456789"
  const letters = Array.from(randomBytes(32), (byte) => alphabet[byte & 31]).join("")
  return letters.match(/.{8}/g)!.join("-")
}

/** A value, or the column of the gate that contains it. */
type ValueOrColumn<A> = A | Statement.Fragment

export interface NewKey {
  readonly id: ValueOrColumn<string>
  readonly name: ValueOrColumn<string>
  readonly minted: { readonly prefix: ValueOrColumn<string>; readonly hash: ValueOrColumn<Uint8Array> }
  /** The Identity that the key is bound to, with the Handle in the key's row; null for an Admin Key. */
  readonly identity: { readonly id: ValueOrColumn<string>; readonly handle: ValueOrColumn<string> } | null
  /** The key's rights; without them it may do everything, from everywhere, without expiry. */
  readonly rights?: KeyRights
}

const boundless: KeyRights = { scopes: unlimited, expiresAt: null, networks: null }

/** Returns when the expiry of a key is notified next. A key that expires is created at a known time. */
const nextNoticeOf = (expiresAt: Date | null, at: ValueOrColumn<Date>): Date | null => {
  if (expiresAt === null) return null
  if (Statement.isFragment(at)) throw new Error("a key that ends is made at a time that is known")
  return nextExpiryNotice(expiresAt, at.getTime())
}

/** CTEs `minted` (the key's row if CTE `gate` has one) and its Event `api_key.created`. */
export const mintKey = (
  write: {
    readonly sql: Sql
    readonly org: ValueOrColumn<string>
    readonly at: ValueOrColumn<Date>
    readonly by: Initiator
  },
  gate: Statement.Fragment,
  { id, name, minted, identity, rights = boundless }: NewKey,
): Statement.Fragment => {
  const { sql, org, at } = write
  const { scopes, expiresAt, networks } = rights
  return sql`
    minted as (
      insert into api_key (id, org_id, identity_id, name, token_prefix, token_hash, created_at,
                           scopes, expires_at, networks, end_told_at)
      select ${id}::uuid, ${org}::uuid, ${identity?.id ?? null}::uuid, ${name}::text, ${minted.prefix}::text,
             ${minted.hash}::bytea, ${at}::timestamptz, ${scopes.text}::text, ${expiresAt}::timestamptz,
             ${networks?.text ?? null}::text, ${nextNoticeOf(expiresAt, at)}::timestamptz
      from ${gate}
      returning *
    ),
    ${raiseForOrg({ ...write, org: sql`org_id`, at: sql`created_at` }, "minted", "api_key.created", {
      key_id: sql`id`,
      name: sql`name`,
      scope: identity === null ? "org" : "identity",
      identity_id: identity === null ? null : sql`identity_id`,
      handle: identity?.handle ?? null,
    })}`
}

/**
 * CTEs `revoked` (the rows of `api_key` that `which` selects and that were not revoked) and their Events
 * `api_key.revoked`. Of these keys, `successor` replaces each that has full rights, as it has itself.
 */
export const revokeKeys = (
  write: { readonly sql: Sql; readonly org: string; readonly at: Date; readonly by: Initiator },
  which: Statement.Fragment,
  successor: string | null = null,
): Statement.Fragment => {
  const { sql, at } = write
  const replaced =
    successor === null
      ? sql``
      : sql`, replaced_by = coalesce(replaced_by, case when scopes = ${everything} and expires_at is null and networks is null
                                                      then ${successor}::uuid end)`
  return sql`
    revoked as (
      update api_key set revoked_at = ${at}${replaced} where ${which} and revoked_at is null returning id, name, identity_id,
        (select handle from identity where identity.id = api_key.identity_id) as handle
    ),
    ${raiseForOrg(
      write,
      "revoked",
      "api_key.revoked",
      {
        key_id: sql`id`,
        name: sql`name`,
        scope: sql`case when identity_id is null then 'org' else 'identity' end`,
        identity_id: sql`identity_id`,
        handle: sql`handle`,
      },
      { as: "told_revoked" },
    )}`
}
